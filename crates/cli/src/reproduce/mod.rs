//! `openftl reproduce`: the papers' figures made again, each with files and verdicts.

mod draw;
mod kept;
mod pages;
mod text;

use crate::args::{ReproduceArgs, TRACES};
use crate::device::check_memory;
use crate::error::{unknown, usage};
use crate::output;
use crate::report::table::{Align, Table};
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use kept::Folder;
use papers::perform::{self, memory_needed};
use papers::{Advance, Figure, Lab, Outcome, Performed};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A figure that was made, and the files it was written to.
pub struct Made {
    /// The row of the table.
    pub figure: &'static Figure,
    /// What came out.
    pub outcome: Outcome,
    /// Runs that it took.
    pub runs: usize,
    /// How many of them were taken from the folder of finished runs.
    pub taken: usize,
    /// Its files.
    pub files: Vec<PathBuf>,
}

/// Makes figures and reports them.
pub fn run(args: &ReproduceArgs) -> Result<()> {
    if args.figures.iter().any(|name| name == "list") {
        return list(args);
    }
    let figures = choose(&args.figures)?;
    refuse_idle_traces(args, &figures)?;
    refuse_real_time(args, &figures)?;
    if let Some(folder) = args.traces.as_deref().filter(|folder| !folder.is_dir()) {
        bail!("there is no folder {} of traces (--traces, OPENFTL_TRACES)", folder.display());
    }
    fs::create_dir_all(&args.out).with_context(|| format!("cannot make the folder {}", args.out.display()))?;
    let kept = Folder::open(&args.out, args.fresh)?;
    let jobs = args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let lab =
        Lab { scale: args.scale.0, seed: args.seed, traces: args.traces.clone(), jobs, real_time: args.real_time };
    if !args.only.is_empty() {
        return do_only(&figures, &lab, &kept, args);
    }
    let mut made = Vec::new();
    for (i, figure) in figures.iter().enumerate() {
        made.push(make(figure, &lab, &kept, &args.out, (i + 1, figures.len()))?);
    }
    let summary = args.out.join("verdicts.md");
    output::write(&summary, &pages::markdown(&made, &lab))?;
    if args.json {
        return output::print(&as_json(&made, &lab)?);
    }
    let mut text: String = made.iter().map(text::figure).collect();
    text.push_str(&text::closing(&made, &summary, kept.path()));
    output::print(&text)
}

/// Refuses a folder of traces that no figure would look into, unless only the environment names it.
fn refuse_idle_traces(args: &ReproduceArgs, figures: &[&'static Figure]) -> Result<()> {
    let stated =
        args.traces.as_ref().is_some_and(|folder| std::env::var_os(TRACES).as_deref() != Some(folder.as_os_str()));
    if !stated || figures.iter().any(|figure| figure.uses_traces) {
        return Ok(());
    }
    let names = |figures: &mut dyn Iterator<Item = &Figure>| figures.map(|f| f.name).collect::<Vec<_>>().join(", ");
    Err(usage(format!(
        "--traces means nothing to {}; recorded traces are played by {}; leave it out, or add one of these",
        names(&mut figures.iter().copied()),
        names(&mut papers::table().filter(|figure| figure.uses_traces))
    )))
}

/// Refuses real time for figures whose runs have none.
fn refuse_real_time(args: &ReproduceArgs, figures: &[&'static Figure]) -> Result<()> {
    let names = |figures: &mut dyn Iterator<Item = &Figure>| figures.map(|f| f.name).collect::<Vec<_>>().join(", ");
    let without = names(&mut figures.iter().copied().filter(|figure| !figure.has_real_time()));
    if !args.real_time || without.is_empty() {
        return Ok(());
    }
    Err(usage(format!(
        "--real-time means nothing to {without}; it is for {}; leave the option or the others out",
        names(&mut papers::table().filter(|figure| figure.has_real_time()))
    )))
}

/// The figures of these names, each once, in the order of the table if all are meant.
fn choose(names: &[String]) -> Result<Vec<&'static Figure>> {
    if names.iter().any(|name| name == "all") {
        return Ok(papers::table().collect());
    }
    let mut figures: Vec<&'static Figure> = Vec::new();
    for name in names {
        let figure = papers::find(name).ok_or_else(|| {
            let known = papers::table().map(|figure| figure.name);
            unknown_figure(name, known)
        })?;
        if figures.iter().any(|other| other.name == figure.name) {
            return Err(usage(format!("{name} is named twice")));
        }
        figures.push(figure);
    }
    Ok(figures)
}

fn unknown_figure<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> anyhow::Error {
    let text = unknown("figure", name, known, "").to_string();
    usage(text.replace("(openftl list )", "(openftl reproduce list)"))
}

fn list(args: &ReproduceArgs) -> Result<()> {
    if args.figures.len() > 1 {
        return Err(usage("`list` stands alone: it makes no figure"));
    }
    if args.json {
        let rows: Vec<_> = papers::table()
            .map(|figure| json!({"name": figure.name, "title": figure.title, "source": figure.source, "uses_traces": figure.uses_traces}))
            .collect();
        let mut text = serde_json::to_string_pretty(&rows).context("the table is not JSON")?;
        text.push('\n');
        return output::print(&text);
    }
    let mut table = Table::new(&[("figure", Align::Left), ("what it shows", Align::Left)]);
    for figure in papers::table() {
        table.row(vec![figure.name.to_owned(), figure.title.to_owned()]);
    }
    output::print(&table.render())
}

/// Does the runs of some series of figures, for a later call to make the figures of.
fn do_only(figures: &[&'static Figure], lab: &Lab, kept: &Folder, args: &ReproduceArgs) -> Result<()> {
    let mut plans = Vec::new();
    let (mut known, mut unkept) = (BTreeSet::new(), 0);
    for figure in figures {
        let mut plan = (figure.plan)(lab)?;
        known.extend(plan.iter().map(|experiment| experiment.series.clone()));
        plan.retain(|experiment| args.only.contains(&experiment.series));
        unkept += plan.iter().filter(|experiment| experiment.spec.text().is_none()).count();
        check_memory(memory_needed(&plan))?;
        plans.push((*figure, plan));
    }
    if let Some(name) = args.only.iter().find(|name| !known.contains(*name)) {
        let known = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        return Err(usage(format!("--only: no run is of `{name}`; there are {known}")));
    }
    if unkept > 0 {
        return Err(usage(format!(
            "--only: {unkept} of these runs play recorded traces, which are not kept; make the figure without --only"
        )));
    }
    let (mut runs, mut taken) = (0, 0);
    for (figure, plan) in plans {
        let bar = bar(figure.name);
        let done = perform::run_all(plan, lab.jobs, kept, &|at| show(&bar, at))?;
        bar.finish_and_clear();
        runs += done.len();
        taken += done.iter().filter(|run| run.kept).count();
    }
    let folder = kept.path().display();
    if args.json {
        let mut text = serde_json::to_string_pretty(&json!({"runs": runs, "taken": taken, "folder": kept.path()}))?;
        text.push('\n');
        return output::print(&text);
    }
    output::print(&format!(
        "runs done: {}, there before: {taken}; all are in {folder}. Without --only the same call makes the figures.\n",
        runs - taken
    ))
}

/// Moves a bar to where the runs of a figure are.
fn show(bar: &ProgressBar, at: Advance) {
    bar.set_message(match at.runs {
        0 => "measuring".to_owned(),
        runs => format!("{} of {runs} runs done", at.done),
    });
    bar.set_position((at.share * STEPS as f64) as u64);
}

fn make(
    figure: &'static Figure,
    lab: &Lab,
    kept: &Folder,
    folder: &Path,
    (number, of): (usize, usize),
) -> Result<Made> {
    let plan = (figure.plan)(lab)?;
    check_memory(memory_needed(&plan))?;
    let bar = bar(&format!("{} ({number} of {of})", figure.name));
    let performed = papers::perform(figure, lab, plan, kept, &|at| show(&bar, at))?;
    bar.finish_and_clear();
    let Performed { outcome, runs, kept: taken } = performed;
    let files = write(figure, &outcome, lab, folder)?;
    Ok(Made { figure, outcome, runs, taken, files })
}

/// Steps of a progress bar.
const STEPS: u64 = 10_000;

/// A bar on standard error if that is a terminal; nothing otherwise.
fn bar(prefix: &str) -> ProgressBar {
    let bar =
        ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr()).with_finish(ProgressFinish::AndClear);
    // The template is a constant; were it malformed, the bar would keep its default.
    let template = "{prefix}  {msg} [{bar:30}] {percent:>3}%  {elapsed} gone, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(prefix.to_owned());
    bar
}

/// `gecko/fig9` as the beginning of a file's name.
fn stem(figure: &Figure) -> String {
    figure.name.replace('/', "-")
}

fn write(figure: &Figure, outcome: &Outcome, lab: &Lab, folder: &Path) -> Result<Vec<PathBuf>> {
    let stem = stem(figure);
    let path = |name: &str, extension: &str| {
        let dash = if name.is_empty() { "" } else { "-" };
        folder.join(format!("{stem}{dash}{name}.{extension}"))
    };
    let mut files = Vec::new();
    for table in &outcome.tables {
        files.push((path(&table.name, "csv"), pages::csv(table)));
    }
    for chart in &outcome.charts {
        files.push((path(draw::name(chart), "svg"), draw::file(chart)));
    }
    files.push((path("", "html"), pages::html(figure, outcome, lab)));
    for (path, text) in &files {
        output::write(path, text)?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

fn as_json(made: &[Made], lab: &Lab) -> Result<String> {
    let figures: Vec<_> = made
        .iter()
        .map(|made| {
            json!({
                "name": made.figure.name,
                "title": made.figure.title,
                "source": made.figure.source,
                "outcome": made.outcome,
                "runs": made.runs,
                "taken": made.taken,
                "files": made.files,
            })
        })
        .collect();
    let document = json!({
        "openftl": env!("CARGO_PKG_VERSION"),
        "scale": lab.scale,
        "seed": lab.seed,
        "figures": figures,
    });
    let mut text = serde_json::to_string_pretty(&document).context("a figure cannot be written as JSON")?;
    text.push('\n');
    Ok(text)
}
