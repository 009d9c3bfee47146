//! libCacheSim's oracleGeneral: 24-byte little-endian records
//! `u32 time_s, u64 object, u32 size, i64 next access`.
//!
//! It is a cache trace: it does not say what reads and what writes, nor where an object lies.
//! Requests are taken for writes unless the options say otherwise. Object numbers are taken for
//! sectors, unless they are too large for addresses; then objects are laid out one after another in
//! order of first appearance, in 4-KiB pages.

use super::{FormatEntry, Unsaid};
use crate::error::WorkloadError;
use crate::request::Op;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;
use crate::trace::options::SizeUnit;
use std::collections::HashMap;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "oraclegeneral",
    summary: "libCacheSim oracleGeneral, binary cache trace",
    layout: "u32 time (s), u64 object, u32 size (B), i64 next access (-1: none)",
    unsaid: &[Unsaid::AddressUnit, Unsaid::Operation],
    detect,
    read,
};

const RECORD_BYTES: usize = 24;

/// Object numbers from here on are hashes, not sectors: 2^48 sectors are 128 PiB.
const SECTOR_MAX: u64 = 1 << 48;

struct Access {
    time_s: u32,
    object: u64,
    bytes: u32,
    next: i64,
}

fn access(record: &[u8]) -> Access {
    let number =
        |at: usize, bytes: usize| record[at..at + bytes].iter().rev().fold(0u64, |sum, b| sum << 8 | u64::from(*b));
    Access {
        time_s: number(0, 4) as u32,
        object: number(4, 8),
        bytes: number(12, 4) as u32,
        next: number(16, 8) as i64,
    }
}

/// The records carry no mark, so many things at once must look right: times that do not fall, sane
/// sizes, and next accesses that lie ahead.
fn detect(head: &[u8]) -> u32 {
    let (mut good, mut all, mut last_s) = (0, 0, 0);
    for (index, record) in head.chunks_exact(RECORD_BYTES).take(256).enumerate() {
        let access = access(record);
        let ahead = access.next > index as i64 && access.next < 1 << 40;
        let end = access.next == -1 || access.next == i64::MAX;
        let calm = access.time_s >= last_s && (index == 0 || access.time_s - last_s < 86_400);
        all += 1;
        good += u32::from(calm && (1..1 << 30).contains(&access.bytes) && (ahead || end));
        last_s = access.time_s;
    }
    // Binary files have no partial match; half right by chance is not right.
    if all > 0 && good * 10 >= all * 9 { good * 100 / all } else { 0 }
}

/// Where objects are laid out.
enum Places {
    /// Object numbers are addresses in this unit.
    Addresses(SizeUnit),
    /// Objects are laid out one after another: start and room of each, and where the next one goes.
    Extents(HashMap<u64, (u64, u64)>, u64),
}

impl Places {
    /// Offset and bytes of an access.
    fn place(&mut self, access: &Access) -> Result<(u64, u64), String> {
        let bytes = u64::from(access.bytes);
        match self {
            Places::Addresses(unit) => match access.object.checked_mul(unit.bytes()) {
                Some(offset) => Ok((offset, bytes)),
                None => Err(format!("object {} in {} is too large for an address", access.object, unit.name())),
            },
            Places::Extents(extents, end) => {
                let (offset, room) = *extents.entry(access.object).or_insert_with(|| {
                    let room = bytes.div_ceil(4096).max(1) * 4096;
                    *end += room;
                    (*end - room, room)
                });
                // An object that grows keeps its first extent, or it would overlap its neighbour.
                Ok((offset, bytes.min(room)))
            }
        }
    }
}

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    let op = builder.options.unsaid_op.unwrap_or(Op::Write);
    let all = format!("the format does not tell reads from writes: all requests are taken for {}s", op.name());
    builder.notes.push(all);
    let hashed = input.head().chunks_exact(RECORD_BYTES).any(|record| access(record).object >= SECTOR_MAX);
    let (mut places, note) = match (builder.options.address_unit, hashed) {
        (None, true) => (
            Places::Extents(HashMap::new(), 0),
            "object numbers are hashes: objects are laid out in order of first appearance, in 4-KiB pages".to_owned(),
        ),
        (unit, _) => {
            let unit = unit.unwrap_or(SizeUnit::Sectors);
            (Places::Addresses(unit), format!("object numbers are taken for addresses in {}", unit.name()))
        }
    };
    builder.notes.push(note);
    let mut record = [0u8; RECORD_BYTES];
    while !builder.full() {
        let at = match input.record(&mut record, builder.format) {
            Ok(Some(at)) => at,
            Ok(None) => break,
            Err(error @ WorkloadError::Record { .. }) => {
                builder.fault(error)?;
                break;
            }
            Err(error) => return Err(error),
        };
        let access = access(&record);
        let time_ns = i128::from(access.time_s) * 1_000_000_000;
        let pushed = places.place(&access).and_then(|(offset, bytes)| {
            builder.push(Row { time_ns, device: "0".into(), op, offset, bytes, fua: false })
        });
        if let Err(why) = pushed {
            let (file, format) = (input.file.clone(), builder.format);
            builder.fault(WorkloadError::Record { file, offset: at, format, why })?;
        }
    }
    Ok(())
}
