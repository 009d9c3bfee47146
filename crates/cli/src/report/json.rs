//! A comparison as JSON: one object, with one object a run in `results`.

use super::{NotTaken, Report};
use anyhow::{Context, Result};
use serde::Serialize;
use sim::RunResult;

#[derive(Serialize)]
struct Document<'a> {
    openftl: &'static str,
    command: &'a str,
    notes: &'a [String],
    not_taken: &'a [NotTaken],
    results: &'a [RunResult],
}

/// The report as one line-broken JSON object.
pub fn render(report: &Report) -> Result<String> {
    let document = Document {
        openftl: env!("CARGO_PKG_VERSION"),
        command: &report.command,
        notes: &report.notes,
        not_taken: &report.not_taken,
        results: &report.results,
    };
    let mut text = serde_json::to_string_pretty(&document).context("a result cannot be written as JSON")?;
    text.push('\n');
    Ok(text)
}
