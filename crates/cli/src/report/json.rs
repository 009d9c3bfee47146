//! A comparison as JSON: one object, with one object a run in `results`.

use super::{NotTaken, Report};
use anyhow::{Context, Result};
use serde::Serialize;
use sim::RunResult;

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
    results: &'a [RunResult],
}

/// The report as one line-broken JSON object.
pub fn render(report: &Report) -> Result<String> {
    let document = Document {
        schema: SCHEMA,
        openftl: env!("CARGO_PKG_VERSION"),
        command: &report.command,
        notes: &report.notes,
        not_taken: &report.not_taken,
        settings: &report.settings,
        results: &report.results,
    };
    let mut text = serde_json::to_string_pretty(&document).context("a result cannot be written as JSON")?;
    text.push('\n');
    Ok(text)
}
