//! A comparison as JSON: one object, with one object a run in `results`.

use super::{NotTaken, Report};
use anyhow::{Context, Result};
use serde::Serialize;
use sim::RunResult;
use std::borrow::Cow;

/// The form of the object. Its number rises when a field changes its meaning or goes away.
pub const SCHEMA: &str = "openftl-compare/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    openftl: &'static str,
    command: &'a str,
    notes: &'a [String],
    not_taken: &'a [NotTaken],
    settings: &'a [serde_json::Value],
    results: Cow<'a, [RunResult]>,
}

/// The report as one line-broken JSON object; with the timelines of its runs, or with empty ones.
pub fn render(report: &Report, timelines: bool) -> Result<String> {
    let mut results = Cow::Borrowed(&report.results[..]);
    if !timelines {
        results.to_mut().iter_mut().for_each(|result| result.timeline.clear());
    }
    let document = Document {
        schema: SCHEMA,
        openftl: env!("CARGO_PKG_VERSION"),
        command: &report.command,
        notes: &report.notes,
        not_taken: &report.not_taken,
        settings: &report.settings,
        results,
    };
    let mut text = serde_json::to_string_pretty(&document).context("a result cannot be written as JSON")?;
    text.push('\n');
    Ok(text)
}
