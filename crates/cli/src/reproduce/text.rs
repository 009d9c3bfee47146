//! Figures as text.

use super::Made;
use crate::report::table::{WIDTH, wrap};
use papers::Verdict;
use std::path::Path;

/// What a figure came to.
pub fn figure(made: &Made) -> String {
    let mut out = format!("{}\n", paragraph(&format!("{}: {}", made.figure.name, made.figure.title), "", ""));
    for line in [made.figure.source].into_iter().chain(made.outcome.setup.iter().map(String::as_str)) {
        out.push_str(&paragraph(line, "  ", "    "));
        out.push('\n');
    }
    for verdict in &made.outcome.verdicts {
        out.push_str(&self::verdict(verdict));
    }
    for line in &made.outcome.remarks {
        out.push_str(&paragraph(&format!("note: {line}"), "  ", "        "));
        out.push('\n');
    }
    out.push('\n');
    out
}

fn verdict(verdict: &Verdict) -> String {
    let mark = if verdict.holds { "HOLDS      " } else { "DOES NOT   " };
    let mut out = paragraph(&verdict.claim, &format!("  {mark}"), "             ");
    out.push('\n');
    let lines = [
        ("paper", Some(verdict.paper.as_str())),
        ("here", Some(verdict.ours.as_str())),
        ("formula", verdict.formula.as_deref()),
        ("margin", Some(verdict.margin.as_str())),
        ("why not", verdict.why.as_deref()),
    ];
    for (name, text) in lines {
        if let Some(text) = text {
            let head = format!("             {name:<9}");
            out.push_str(&paragraph(text, &head, "                      "));
            out.push('\n');
        }
    }
    out
}

/// What all of them came to.
pub fn closing(made: &[Made], summary: &Path, kept: &Path) -> String {
    let verdicts = || made.iter().flat_map(|made| &made.outcome.verdicts);
    let held = verdicts().filter(|verdict| verdict.holds).count();
    let files: usize = made.iter().map(|made| made.files.len()).sum();
    let mut out =
        format!("{held} of {} claims hold. {} files beside {}\n", verdicts().count(), files, summary.display());
    let (runs, taken) = made.iter().fold((0, 0), |(runs, taken), made| (runs + made.runs, taken + made.taken));
    if taken > 0 {
        out.push_str(&format!(
            "{taken} of {runs} runs were taken from {}, where finished runs are kept\n",
            kept.display()
        ));
    }
    out
}

/// The text in lines that fit, the first after `head`, the others after `indent`.
fn paragraph(text: &str, head: &str, indent: &str) -> String {
    let width = WIDTH - indent.chars().count().max(head.chars().count());
    let lines = wrap(text, width);
    let with_heads = lines.iter().enumerate().map(|(i, line)| format!("{}{line}", if i == 0 { head } else { indent }));
    with_heads.collect::<Vec<_>>().join("\n")
}
