//! The text output of blkparse (blktrace).
//!
//! Of the many events of a request one kind is kept: Q (queued) if the file has any, else I, D or C
//! in this order. The summary at the end of the file is passed over. An F before the letter of a
//! write is a flush before it, an F behind that letter is FUA.

use super::FormatEntry;
use super::fields::{self, int, scaled, time_ns};
use crate::error::WorkloadError;
use crate::request::Op;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;
use crate::trace::names::Names;
use crate::trace::options::TimeUnit;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "blkparse",
    summary: "blkparse text output (Linux blktrace)",
    layout: "major,minor cpu sequence time (s) pid action rwbs sector (512 B) + sectors [process]",
    unsaid: &[],
    detect,
    read,
};

/// Kinds of events that name a request, the best first.
const ACTIONS: [&str; 4] = ["Q", "I", "D", "C"];

/// An event worth keeping: which of [`ACTIONS`], and the request.
type Event<'l> = Result<Option<Parsed<'l>>, String>;

struct Parsed<'l> {
    rank: usize,
    /// What was written before it has to be durable before it begins.
    flush_first: bool,
    row: Row<'l>,
}

fn parse(line: &str) -> Event<'_> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let [device, cpu, sequence, time, pid, action, rest @ ..] = &columns[..] else {
        return Err("it has fewer than 6 columns".to_owned());
    };
    let (major, minor) = device.split_once(',').ok_or("it does not start with major,minor")?;
    for (text, what) in [(major, "major"), (minor, "minor"), (*cpu, "cpu"), (*sequence, "sequence"), (*pid, "pid")] {
        int(text, what)?;
    }
    let at_ns = time_ns(time, TimeUnit::Seconds)?;
    let Some(rank) = ACTIONS.iter().position(|known| known == action) else {
        return Ok(None);
    };
    let Some((rwbs, rest)) = rest.split_first() else {
        return Ok(None);
    };
    let row = |op, offset, bytes| {
        let is_write = op == Op::Write;
        let flush_first = is_write && rwbs.starts_with('F');
        let fua = is_write && rwbs.trim_start_matches('F').contains('F');
        let row = Row { time_ns: at_ns, device: (*device).into(), op, offset, bytes, fua };
        Some(Parsed { rank, flush_first, row })
    };
    let (sector, sectors) = match rest {
        [sector, "+", sectors, ..] => (scaled(sector, 512, "sector")?, scaled(sectors, 512, "sectors")?),
        _ if rwbs.starts_with('F') => return Ok(row(Op::Flush, 0, 0)),
        _ => return Ok(None),
    };
    let op = match rwbs.bytes().find(|b| b"DRW".contains(b)) {
        Some(b'D') => Op::Trim,
        Some(b'R') => Op::Read,
        Some(b'W') if sectors == 0 && rwbs.starts_with('F') => Op::Flush,
        Some(b'W') => Op::Write,
        _ => return Ok(None),
    };
    Ok(row(op, sector, sectors))
}

fn detect(head: &[u8]) -> u32 {
    let (mut good, mut bad) = (0, 0);
    for line in fields::head_lines(head).iter().take_while(|line| !is_summary(line)) {
        match parse(line) {
            Ok(_) => good += 1,
            Err(_) => bad += 1,
        }
    }
    fields::score(good, good + bad)
}

/// The first line of the summary is `CPU0 (sda):` or, for one CPU, `Total (sda):`.
fn is_summary(line: &str) -> bool {
    (line.starts_with("CPU") || line.starts_with("Total") || line.starts_with("Throughput")) && line.contains('(')
}

struct Kept {
    rank: u8,
    device: u32,
    op: Op,
    flush_first: bool,
    fua: bool,
    at_ns: i128,
    offset: u64,
    bytes: u64,
    line: u64,
}

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    let (kept, devices) = read_events(input, builder)?;
    let Some(best) = kept.iter().map(|k| k.rank).min() else {
        return Ok(());
    };
    let action = ACTIONS[usize::from(best)];
    builder.notes.push(format!("events of kind {action} are taken for the requests"));
    for event in kept.iter().filter(|k| k.rank == best) {
        if builder.full() {
            break;
        }
        let Kept { op, at_ns: time_ns, offset, bytes, fua, .. } = *event;
        let device = devices.name(event.device);
        if event.flush_first {
            let flush = Row { time_ns, device: device.into(), op: Op::Flush, offset: 0, bytes: 0, fua: false };
            if let Err(why) = builder.push(flush) {
                builder.fault(fields::line_error(input, builder.format, event.line, why, device))?;
            }
            if builder.full() {
                break;
            }
        }
        if let Err(why) = builder.push(Row { time_ns, device: device.into(), op, offset, bytes, fua }) {
            let text = format!("{device} {action} {} {offset} B + {bytes} B", op.name());
            let error = fields::line_error(input, builder.format, event.line, why, &text);
            builder.fault(error)?;
        }
    }
    Ok(())
}

fn read_events(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(Vec<Kept>, Names), WorkloadError> {
    let (mut kept, mut devices) = (Vec::new(), Names::default());
    while let Some((line, text)) = input.line()? {
        if text.trim().is_empty() {
            continue;
        }
        if is_summary(&text) {
            break;
        }
        match parse(&text) {
            Ok(None) => {}
            Ok(Some(Parsed { rank, flush_first, row })) => {
                let Row { time_ns: at_ns, op, offset, bytes, device, fua } = row;
                let (rank, device) = (rank as u8, devices.number(&device));
                kept.push(Kept { rank, device, op, flush_first, fua, at_ns, offset, bytes, line });
            }
            Err(why) => {
                let error = fields::line_error(input, builder.format, line, why, &text);
                builder.fault(error)?;
            }
        }
    }
    Ok((kept, devices))
}
