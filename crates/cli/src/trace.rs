//! `openftl trace`: describe, convert, generate, fit.

use crate::args::{Target, TraceArgs, TraceCommand};
use crate::error::usage;
use crate::fitted;
use crate::load;
use crate::output;
use crate::report::table::{WIDTH, wrap};
use crate::units::{bytes, count, scaled};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;
use workload::Spec;
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
        TraceCommand::Generate { workload, requests, logical, page, seed, to, out } => {
            let spec: Spec = workload.parse()?;
            let page_bytes = u32::try_from(page.0).ok().filter(|bytes| *bytes > 0 && logical.0 >= page.0);
            let Some(page_bytes) = page_bytes else {
                return Err(usage(format!(
                    "--page {} is no page of a disk of {}; ask for 4KiB",
                    bytes(page.0),
                    bytes(logical.0)
                )));
            };
            let mut source = spec.build(logical.0, page_bytes, *seed)?;
            let trace = trace::record(&mut *source, requests.0)?;
            if (trace.records().len() as u64) < requests.0 {
                output::note(&format!("the workload ends after {} requests", count(trace.records().len() as u64)));
            }
            convert(&trace, *to, out.as_deref())
        }
        TraceCommand::Fit { file, out, check, ftl, json, read } => {
            let trace = Arc::new(open(file, read)?);
            let profile = trace::fit(&trace);
            let text = profile.to_toml()?;
            let Some(path) = out else { return output::print(&text) };
            output::write(path, &text)?;
            output::note(&format!("run it with: openftl compare --workload profile:{}", path.display()));
            match check {
                true => output::print(&fitted::check(trace, file, read, (&profile, path), ftl, *json)?),
                false => Ok(()),
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
        Target::Msr => Format::Msr,
        Target::Spc => Format::Spc,
        Target::FiveColumn => Format::FiveColumn,
    };
    let notes = match out {
        Some(path) => {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            trace::convert(trace, format, BufWriter::new(file))?
        }
        None => trace::convert(trace, format, BufWriter::new(io::stdout().lock()))?,
    };
    notes.iter().for_each(|note| output::note(note));
    Ok(())
}

fn describe(info: &Info) -> String {
    let mut lines = vec![("trace", info.name.clone()), ("format", info.format.to_owned())];
    for note in &info.notes {
        let wrapped = wrap(note, WIDTH - LABEL).into_iter().enumerate();
        lines.extend(wrapped.map(|(i, text)| (if i == 0 { "note" } else { "" }, text)));
    }
    lines.push(("requests", kinds(info)));
    if info.skipped > 0 {
        lines.push(("skipped", format!("{} malformed lines or records", count(info.skipped))));
    }
    lines.push(("devices", count(info.devices)));
    lines.push(("written", format!("{} in requests of {}", bytes(info.written_bytes), sizes(&info.write_size))));
    lines.push(("read", format!("{} in requests of {}", bytes(info.read_bytes), sizes(&info.read_size))));
    lines.push(("footprint", footprint(info)));
    lines.push(("overwriting", format!("{:.2} page writes for each page written", info.overwrite_ratio)));
    lines.push(("write skew", skew(&info.write_skew)));
    lines.push(("read skew", skew(&info.read_skew)));
    let (writes, reads) = (info.sequential_writes_percent, info.sequential_reads_percent);
    lines.push(("sequential", format!("{writes:.1}% of writes and {reads:.1}% of reads start where the last ended")));
    lines.push(("unaligned", unaligned(info)));
    lines.push(("write reuse", reuse(&info.write_reuse_pages)));
    lines.push(("arrivals", arrivals(info)));
    lines.into_iter().map(|(label, text)| format!("{label:<LABEL$}{text}\n")).collect()
}

/// Columns of the labels.
const LABEL: usize = 13;

fn kinds(info: &Info) -> String {
    let mut text = format!("{}: {} writes ({:.1}%)", count(info.requests), count(info.writes), info.write_percent);
    for (what, n) in [("reads", info.reads), ("trims", info.trims), ("flushes", info.flushes)] {
        if n > 0 {
            text.push_str(&format!(", {} {what}", count(n)));
        }
    }
    text
}

fn unaligned(info: &Info) -> String {
    let shift = match info.usual_shift_bytes {
        0 => String::new(),
        bytes => {
            let page = u64::from(info.footprint.page_bytes);
            format!("; most begin {bytes} B into a page, and would not with --shift {}", page - bytes)
        }
    };
    format!("{:.1}% of requests do not begin and end at pages{shift}", info.unaligned_percent)
}

fn footprint(info: &Info) -> String {
    let f = &info.footprint;
    let page = u64::from(f.page_bytes);
    format!(
        "{} pages of {} touched ({}), {} written ({})",
        count(f.touched_pages),
        bytes(page),
        bytes(f.touched_pages * page),
        count(f.written_pages),
        bytes(f.written_pages * page)
    )
}

fn reuse(p: &Percentiles) -> String {
    if p.count == 0 {
        return "no page is written twice".to_owned();
    }
    format!("median {} distinct pages between two writes of a page, 90% within {}", count(p.p50), count(p.p90))
}

fn arrivals(info: &Info) -> String {
    if !info.timed {
        return "the trace has no times".to_owned();
    }
    let rate = scaled(info.requests_per_second);
    format!(
        "{rate} a second over {:.1} s, coefficient of variation of gaps {:.2}",
        info.duration_s, info.interarrival_cv
    )
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
