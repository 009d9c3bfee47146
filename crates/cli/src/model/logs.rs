//! `openftl model --rates`: what one log and separate logs program under independent writes.

use crate::args::LogsArgs;
use crate::error::usage;
use crate::output;
use crate::report::table::{Align, Table};
use crate::units::{count, trimmed};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use sim::reference::Rates;

/// The most logical pages: those of 16 TiB in pages of 4 KiB.
const PAGES_MAX: u64 = 1 << 32;

/// One line of the table.
struct Row {
    workload: String,
    percent: f64,
    one_log: f64,
    separate_logs: f64,
}

/// Prints the reference.
pub(super) fn run(args: &LogsArgs, as_json: bool) -> Result<()> {
    let rows = rows(args)?;
    if as_json {
        let mut text = serde_json::to_string_pretty(&json(args, &rows)).context("not JSON")?;
        text.push('\n');
        return output::print(&text);
    }
    output::print(&text(args, &rows))
}

fn rows(args: &LogsArgs) -> Result<Vec<Row>> {
    let pages = args.pages.0;
    if !(1..=PAGES_MAX).contains(&pages) {
        return Err(usage(format!("--pages {pages} is not between 1 and 2^32, the pages that an FTL can name")));
    }
    if let Some(percent) = args.over_provisioning.iter().find(|percent| !(**percent > 0.0 && **percent <= 1000.0)) {
        return Err(usage(format!(
            "--over-provisioning {percent} is not between 0 and 1000 percent of the logical pages; 7 is usual"
        )));
    }
    let mut rows = Vec::new();
    for text in &args.rates {
        let spec: workload::Spec = text.parse().map_err(|error| usage(format!("--rates {text}: {error}")))?;
        let rates = spec.write_rates(pages).and_then(|classes| Rates::new(&classes)).ok_or_else(|| {
            usage(format!(
                "--rates {text}: the formulas are of whole pages written independently of each other: uniform, zipf or \
                 hotcold, without size, trims and footprint"
            ))
        })?;
        rows.extend(args.over_provisioning.iter().map(|&percent| Row {
            workload: spec.to_string(),
            percent,
            one_log: rates.one_log(percent / 100.0),
            separate_logs: rates.separate_logs(percent / 100.0),
        }));
    }
    Ok(rows)
}

fn text(args: &LogsArgs, rows: &[Row]) -> String {
    let mut out = format!(
        "Write-amplification (programs for each host write) of {} logical pages, written independently of each other at \
         known\nrates, in logs that are cleaned oldest first. Separate: pages of each rate in a log of their own, spare space \
         split best.\n\n",
        count(args.pages.0)
    );
    let mut table = Table::new(&[
        ("rates", Align::Left),
        ("over-provisioning", Align::Right),
        ("one log", Align::Right),
        ("separate logs", Align::Right),
    ]);
    for row in rows {
        table.row(vec![
            row.workload.clone(),
            format!("{}%", trimmed(row.percent)),
            format!("{:.2}", row.one_log),
            format!("{:.2}", row.separate_logs),
        ]);
    }
    out.push_str(&table.render());
    out
}

fn json(args: &LogsArgs, rows: &[Row]) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "rates": row.workload,
                "over_provisioning_percent": row.percent,
                "one_log": row.one_log,
                "separate_logs": row.separate_logs,
            })
        })
        .collect();
    json!({"openftl": env!("CARGO_PKG_VERSION"), "logical_pages": args.pages.0, "results": rows})
}
