//! VMware's VSCSI traces (CloudPhysics), versions 1 and 2, little endian.
//!
//! Version 1, 32 bytes:
//! `u32 number, u32 bytes, u32 scatter entries, u16 command, u16 version, u64 LBN, u64 time_us`.
//! Version 2, 40 bytes:
//! `u16 command, u16 version, u32 number, u32 bytes, u32 scatter entries, u64 LBN, u64 time_us`,
//! then `u64 response_us`.
//! The upper byte of `version` is 1 or 2, the lower byte of `command` the SCSI opcode.

use super::FormatEntry;
use crate::error::WorkloadError;
use crate::request::Op;
use crate::trace::builder::{Builder, Row};
use crate::trace::input::Input;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    name: "vscsi",
    summary: "VMware VSCSI (CloudPhysics), binary, versions 1 and 2",
    layout: "v1: u32 number, u32 bytes, u32 entries, u16 command, u16 version, u64 LBN (512 B), u64 time (us); v2: command and version first, response time last",
    unsaid: &[],
    detect,
    read,
};

/// Where the fields of a version are.
struct Layout {
    record_bytes: usize,
    command: usize,
    version: usize,
    bytes: usize,
    address: usize,
    time: usize,
}

const V1: Layout = Layout { record_bytes: 32, command: 12, version: 14, bytes: 4, address: 16, time: 24 };
const V2: Layout = Layout { record_bytes: 40, command: 0, version: 2, bytes: 8, address: 16, time: 24 };

fn number(record: &[u8], at: usize, bytes: usize) -> u64 {
    record[at..at + bytes].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn is_of(record: &[u8], layout: &Layout, version: u64) -> bool {
    number(record, layout.version, 2) >> 8 == version
}

fn score(head: &[u8], layout: &Layout, version: u64) -> u32 {
    let (mut good, mut all) = (0, 0);
    for record in head.chunks_exact(layout.record_bytes).take(64) {
        all += 1;
        good += u32::from(is_of(record, layout, version) && number(record, layout.bytes, 4).is_multiple_of(512));
    }
    super::fields::score(good, all)
}

fn detect(head: &[u8]) -> u32 {
    score(head, &V1, 1).max(score(head, &V2, 2))
}

/// What a SCSI command does to the medium; `None` for those that transfer no user data.
fn operation(command: u64) -> Option<Op> {
    match command & 0xff {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0x8e => Some(Op::Write),
        0x42 => Some(Op::Trim),
        0x35 | 0x91 => Some(Op::Flush),
        _ => None,
    }
}

fn read(input: &mut Input<'_>, builder: &mut Builder<'_>) -> Result<(), WorkloadError> {
    let (layout, version) = match score(input.head(), &V2, 2) > score(input.head(), &V1, 1) {
        true => (&V2, 2),
        false => (&V1, 1),
    };
    builder.notes.push(format!("VSCSI version {version}"));
    let mut buffer = [0u8; 40];
    let record = &mut buffer[..layout.record_bytes];
    let mut others = 0u64;
    while !builder.full() {
        let at = match input.record(record, builder.format) {
            Ok(Some(at)) => at,
            Ok(None) => break,
            Err(error @ WorkloadError::Record { .. }) => {
                builder.fault(error)?;
                break;
            }
            Err(error) => return Err(error),
        };
        let outcome = match operation(number(record, layout.command, 2)) {
            _ if !is_of(record, layout, version) => Err(format!("its version is not {version}")),
            None => {
                others += 1;
                Ok(())
            }
            Some(op) => push(builder, record, layout, op),
        };
        if let Err(why) = outcome {
            let (file, format) = (input.file.clone(), builder.format);
            builder.fault(WorkloadError::Record { file, offset: at, format, why })?;
        }
    }
    if others > 0 {
        builder.notes.push(format!("{others} SCSI commands that transfer no data left out"));
    }
    Ok(())
}

fn push(builder: &mut Builder<'_>, record: &[u8], layout: &Layout, op: Op) -> Result<(), String> {
    let sector = number(record, layout.address, 8);
    builder.push(Row {
        time_ns: i128::from(number(record, layout.time, 8)) * 1_000,
        device: "0".into(),
        op,
        offset: sector.checked_mul(512).ok_or_else(|| format!("LBN {sector} is too large"))?,
        bytes: number(record, layout.bytes, 4),
        fua: false,
    })
}
