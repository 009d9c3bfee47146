//! `openftl trace fit --check`: FTLs under a trace and under the profile that was fitted to it.

use crate::args::{Cli, Command, CompareArgs, ReadArgs};
use crate::compare;
use crate::error::usage;
use crate::report::table::{Align, Table};
use anyhow::{Context, Result};
use clap::Parser;
use serde_json::json;
use sim::RunResult;
use std::path::Path;
use std::sync::Arc;
use workload::Profile;
use workload::trace::Trace;

/// The form of the object that `--json` prints.
const SCHEMA: &str = "openftl-fit/1";

/// Programs a write under both, as a table or as JSON.
///
/// # Errors
/// Those of a comparison.
pub fn check(
    trace: Arc<Trace>,
    file: &Path,
    read: &ReadArgs,
    (profile, path): (&Profile, &Path),
    ftls: &[String],
    json: bool,
) -> Result<String> {
    let path = path.to_str().context("the path of the profile is not UTF-8, which no workload can name")?;
    if profile.write_percent == 0.0 {
        return Err(usage("--check compares what writes cost, and the trace has none; leave it out"));
    }
    let mut replay = comparison(ftls, &[])?;
    (replay.trace, replay.read) = (Some(file.to_owned()), read.clone());
    let replayed = compare::results(&replay, Some(trace))?;
    let first = replayed.first().context("a comparison has a run for each FTL")?;
    let (shape, writes) = (&first.geometry, first.host.writes);
    // The same part of the same device is in use.
    let page_bytes = u64::from(shape.page_bytes);
    let footprint = 100.0 * profile.footprint_bytes as f64 / (u64::from(shape.logical_pages) * page_bytes) as f64;
    let like = [
        format!("--workload=profile:{path},footprint={footprint:.6}"),
        format!("--capacity={}", u64::from(shape.physical_pages) * page_bytes),
        format!("--writes={writes}"),
    ];
    let play = comparison(ftls, &like)?;
    let played = compare::results(&play, None)?;
    let programs = |result: &RunResult| result.write_amplification.programs_per_write;
    let rows: Vec<(&str, f64, f64)> = replayed
        .iter()
        .zip(&played)
        .map(|(trace, profile)| (trace.ftl.as_str(), programs(trace), programs(profile)))
        .collect();
    let error = |trace: f64, profile: f64| 100.0 * (profile / trace - 1.0);
    if json {
        let ftls: Vec<serde_json::Value> = rows
            .iter()
            .map(|&(ftl, trace, profile)| {
                json!({ "ftl": ftl, "trace": trace, "profile": profile, "error_percent": error(trace, profile) })
            })
            .collect();
        let document = json!({ "schema": SCHEMA, "writes": writes, "footprint_percent": footprint, "ftls": ftls });
        return Ok(format!("{}\n", serde_json::to_string_pretty(&document).context("not JSON")?));
    }
    let mut table = Table::new(&[
        ("ftl", Align::Left),
        ("trace", Align::Right),
        ("profile", Align::Right),
        ("error", Align::Right),
    ]);
    for (ftl, trace, profile) in rows {
        let cells =
            [ftl.to_owned(), format!("{trace:.3}"), format!("{profile:.3}"), format!("{:+.1}%", error(trace, profile))];
        table.row(cells.to_vec());
    }
    Ok(format!(
        "Flash pages programmed for each page written, under the trace and under the profile\n{}",
        table.render()
    ))
}

/// A comparison of these FTLs with more words.
fn comparison(ftls: &[String], more: &[String]) -> Result<Box<CompareArgs>> {
    let words = ["openftl", "compare"].map(str::to_owned).into_iter();
    let words = words.chain([format!("--ftl={}", ftls.join(","))]).chain(more.iter().cloned());
    match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Compare(args)) => Ok(args),
        Ok(_) => Err(usage("a check is made of comparisons")),
        Err(error) => Err(usage(error.to_string())),
    }
}
