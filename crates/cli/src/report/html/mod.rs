//! A comparison as one HTML page: no scripts, no files beside it, charts as SVG.

pub mod charts;
mod figures;
pub mod svg;

use super::{Report, buffered, findings, ram_total};
use crate::units::{bytes, count, duration_us, scaled};
use sim::RunResult;
use svg::escape;

/// The style of pages and charts.
pub const CSS: &str = include_str!("page.css");

/// The report as a page.
pub fn render(report: &Report) -> String {
    let names: Vec<&str> = report.results.iter().map(|result| result.ftl.as_str()).collect();
    let title = format!("{} compared", list(&names));
    let mut body = format!("<h1>{}</h1>\n{}", escape(&title), run(report));
    body.push_str(&section("What stands out", "", &bullets(&findings::of(report))));
    body.push_str(&section("Summary", "", &summary(&report.results)));
    let buffered = buffered::lines(&report.results);
    if !buffered.is_empty() {
        body.push_str(&section("Write buffer", "", &bullets(&buffered)));
    }
    for figure in figures::all(&report.results) {
        body.push_str(&figure);
    }
    let foot = "The same numbers for programs: add <code>--json</code> to the command.";
    page(&title, &body, foot)
}

/// A whole page. `body` and `foot` are HTML.
pub fn page(title: &str, body: &str, foot: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{CSS}</style>\n</head>\n\
         <body>\n{body}<footer>Written by OpenFTL {}. {foot}</footer>\n</body>\n</html>\n",
        escape(title),
        env!("CARGO_PKG_VERSION")
    )
}

/// `a`, `a and b`, `a, b and c`.
fn list(names: &[&str]) -> String {
    match names {
        [] => "Nothing".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn run(report: &Report) -> String {
    let mut out = String::from("<dl class=\"run\">\n");
    let mut item = |term: &str, html: String| out.push_str(&format!("<dt>{term}</dt><dd>{html}</dd>\n"));
    item("command", format!("<code>{}</code>", escape(&report.command)));
    item("device", escape(&report.device));
    item("workload", escape(&report.workload));
    item("method", escape(&report.method));
    item("seed", report.seed.to_string());
    for note in &report.notes {
        item("note", escape(note));
    }
    out.push_str("</dl>\n");
    out
}

/// A section with its heading; `html` is HTML, the rest text.
pub fn section(title: &str, about: &str, html: &str) -> String {
    let about = if about.is_empty() { String::new() } else { format!("<p class=\"about\">{}</p>\n", escape(about)) };
    format!("<section>\n<h2>{}</h2>\n{about}{html}</section>\n", escape(title))
}

/// A list of texts.
pub fn bullets(lines: &[String]) -> String {
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    format!("<ul>\n{items}</ul>\n")
}

/// A table from texts.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |tag: &str, texts: &mut dyn Iterator<Item = &str>| -> String {
        texts.map(|text| format!("<{tag}>{}</{tag}>", escape(text))).collect()
    };
    let head = cells("th", &mut header.iter().copied());
    let body: String =
        rows.iter().map(|row| format!("<tr>{}</tr>\n", cells("td", &mut row.iter().map(String::as_str)))).collect();
    format!("<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n")
}

fn summary(results: &[RunResult]) -> String {
    let header = [
        "FTL",
        "programs per write",
        "with reads",
        "RAM",
        "erases",
        "erases of a block: mean",
        "most",
        "std. deviation",
    ];
    let rows: Vec<Vec<String>> = results.iter().map(summary_row).collect();
    let mut out = table(&header, &rows);
    let timed: Vec<Vec<String>> = results.iter().filter_map(timed_row).collect();
    if !timed.is_empty() {
        let header = [
            "FTL",
            "requests/s",
            "dies busy",
            "read p50",
            "read p99",
            "read p99.9",
            "write p50",
            "write p99",
            "write p99.9",
        ];
        out.push_str(&table(&header, &timed));
    }
    out
}

fn summary_row(result: &RunResult) -> Vec<String> {
    let wa = &result.write_amplification;
    let written = |value: f64| if result.host.writes == 0 { "–".to_owned() } else { format!("{value:.3}") };
    vec![
        result.ftl.clone(),
        written(wa.programs_per_write),
        written(wa.paper),
        bytes(ram_total(result)),
        count(result.wear.erases_total),
        format!("{:.1}", result.wear.mean),
        result.wear.max.to_string(),
        format!("{:.1}", result.wear.stddev),
    ]
}

fn timed_row(result: &RunResult) -> Option<Vec<String>> {
    let latency = result.latency_us.as_ref()?;
    let rates = result.throughput.unwrap_or_default();
    let mut row = vec![result.ftl.clone(), scaled(rates.iops), format!("{:.0}%", rates.die_utilisation * 100.0)];
    for kind in [&latency.read, &latency.write] {
        let us = |us: f64| if kind.count == 0 { "–".to_owned() } else { duration_us(us) };
        row.extend([kind.p50, kind.p99, kind.p999].map(us));
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn the_page_is_whole_and_needs_nothing_else() {
        let page = render(&samples::report(true));
        assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
        for foreign in ["<script", "http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        for part in ["Write-amplification by cause", "Latency", "over time", "Erases", "RAM"] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("NaN"));
    }

    #[test]
    fn what_the_user_typed_is_escaped() {
        let page = render(&samples::report(false));
        assert!(page.contains("&lt;report&gt;.html") && !page.contains("<report>"));
        assert!(page.contains("uniform:size=4KiB &amp; more"));
    }

    #[test]
    fn untimed_runs_have_no_latency_figure() {
        assert!(!render(&samples::report(false)).contains("Latency of"));
    }

    #[test]
    fn tags_are_balanced() {
        let page = render(&samples::report(true));
        for tag in ["section", "figure", "svg", "table", "details", "ul", "dl", "div"] {
            let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}
