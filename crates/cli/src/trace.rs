//! `openftl trace`: describe, convert, fit.

use crate::args::{Target, TraceArgs, TraceCommand};
use crate::load;
use crate::output;
use crate::units::{bytes, count, scaled};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use workload::trace::{self, Format, Info, Percentiles, Skew, Trace};

/// Does what was asked.
pub fn run(args: &TraceArgs) -> Result<()> {
    match &args.command {
        TraceCommand::Info { file, json, read } => {
            let info = trace::info(&load::open(file, read)?);
            if *json {
                let mut text = serde_json::to_string_pretty(&info).context("the description is not JSON")?;
                text.push('\n');
                return output::print(&text);
            }
            output::print(&describe(&info))
        }
        TraceCommand::Convert { file, to, out, read } => convert(&open(file, read)?, *to, out.as_deref()),
        TraceCommand::Fit { file, out, read } => {
            let text = trace::fit(&open(file, read)?).to_toml()?;
            match out {
                Some(path) => {
                    output::write(path, &text)?;
                    output::note(&format!("run it with: openftl compare --workload profile:{}", path.display()));
                    Ok(())
                }
                None => output::print(&text),
            }
        }
    }
}

/// Opens a trace and says aloud what was guessed.
fn open(file: &Path, read: &crate::args::ReadArgs) -> Result<Trace> {
    let trace = load::open(file, read)?;
    for note in trace.notes() {
        output::note(note);
    }
    Ok(trace)
}

fn convert(trace: &Trace, to: Target, out: Option<&Path>) -> Result<()> {
    let format = match to {
        Target::FioV2 => Format::Fio2,
        Target::FioV3 => Format::Fio3,
        Target::Csv => Format::Csv,
    };
    match out {
        Some(path) => {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            trace::convert(trace, format, BufWriter::new(file))?;
        }
        None => trace::convert(trace, format, BufWriter::new(io::stdout().lock()))?,
    }
    Ok(())
}

fn describe(info: &Info) -> String {
    let mut out = String::new();
    let mut line = |label: &str, text: String| out.push_str(&format!("{label:<17}{text}\n"));
    line("trace", info.name.clone());
    line("format", info.format.to_owned());
    for note in &info.notes {
        for (i, text) in crate::report::table::wrap(note, 80).into_iter().enumerate() {
            line(if i == 0 { "note" } else { "" }, text);
        }
    }
    let mut kinds = format!("{}: {} writes ({:.1}%)", count(info.requests), count(info.writes), info.write_percent);
    for (what, n) in [("reads", info.reads), ("trims", info.trims), ("flushes", info.flushes)] {
        if n > 0 {
            kinds.push_str(&format!(", {} {what}", count(n)));
        }
    }
    line("requests", kinds);
    if info.skipped > 0 {
        line("skipped", format!("{} malformed lines or records", count(info.skipped)));
    }
    line("devices", count(info.devices));
    line("written", format!("{} in requests of {}", bytes(info.written_bytes), sizes(&info.write_size)));
    line("read", format!("{} in requests of {}", bytes(info.read_bytes), sizes(&info.read_size)));
    let f = &info.footprint;
    let page = u64::from(f.page_bytes);
    line(
        "footprint",
        format!(
            "{} pages of {} touched ({}), {} written ({})",
            count(f.touched_pages),
            bytes(page),
            bytes(f.touched_pages * page),
            count(f.written_pages),
            bytes(f.written_pages * page)
        ),
    );
    line("overwriting", format!("{:.2} page writes for each page written", info.overwrite_ratio));
    line("write skew", skew(&info.write_skew));
    line("read skew", skew(&info.read_skew));
    line(
        "sequential",
        format!(
            "{:.1}% of writes and {:.1}% of reads start where the last ended",
            info.sequential_writes_percent, info.sequential_reads_percent
        ),
    );
    let reuse = &info.write_reuse_pages;
    line(
        "write reuse",
        match reuse.count {
            0 => "no page is written twice".to_owned(),
            _ => format!(
                "median {} distinct pages between two writes of a page, 90% within {}",
                count(reuse.p50),
                count(reuse.p90)
            ),
        },
    );
    line(
        "arrivals",
        if info.timed {
            format!(
                "{} a second over {:.1} s, gaps with a coefficient of variation of {:.2}",
                scaled(info.requests_per_second),
                info.duration_s,
                info.interarrival_cv
            )
        } else {
            "the trace has no times".to_owned()
        },
    );
    out
}

fn sizes(p: &Percentiles) -> String {
    if p.count == 0 {
        return "-".to_owned();
    }
    format!(
        "{} on average (median {}, 99% up to {}, largest {})",
        bytes(p.mean.round() as u64),
        bytes(p.p50),
        bytes(p.p99),
        bytes(p.max)
    )
}

fn skew(s: &Skew) -> String {
    format!(
        "hottest 1%, 10%, 20% of pages get {:.1}%, {:.1}%, {:.1}%; like Zipf with theta {:.2}",
        s.hottest_1, s.hottest_10, s.hottest_20, s.zipf_theta
    )
}
