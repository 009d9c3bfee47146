//! A trace without what a disk of the pages written has no use for.

use super::footprint::Extents;
use super::{Record, Trace};
use crate::request::Op;

/// The writes and flushes of a trace, and its reads of pages that it writes. Trims are left out, as
/// if the disk were mounted without discard: every page that was written once stays live, and
/// played densely the trace touches those pages alone.
#[must_use]
pub fn written_only(trace: &Trace, page_bytes: u32) -> Trace {
    let written = Extents::of(trace, page_bytes, |record| record.op() == Op::Write);
    let mut records = Vec::with_capacity(trace.records.len());
    let (mut trims, mut reads) = (0_u64, 0_u64);
    for record in &trace.records {
        match record.op {
            Op::Trim => trims += 1,
            Op::Read => {
                let before = records.len();
                let parts = written.parts_of(record);
                records.extend(parts.map(|(offset, end)| Record { offset, bytes: (end - offset) as u32, ..*record }));
                reads += u64::from(records.len() == before);
            }
            Op::Write | Op::Flush => records.push(*record),
        }
    }
    let mut notes = trace.notes.clone();
    notes.push(format!("{trims} trims left out, and {reads} reads of pages that it never writes"));
    Trace { records, notes, ..trace.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{OpenOptions, footprint, read};

    #[test]
    fn what_is_left_touches_the_pages_written_alone() {
        let lines = [
            "time_ns,device,op,offset,bytes",
            "0,a,trim,0,409600",
            "1,a,write,4096,4096",
            "2,a,write,12288,8192",
            "3,a,read,0,24576",
            "4,a,read,40960,4096",
            "5,b,read,4096,4096",
            "6,a,flush,0,0",
        ];
        let trace = read(lines.join("\n").as_bytes(), "some.csv", &OpenOptions::default()).unwrap();
        let left = written_only(&trace, 4096);
        let at = |record: &Record| (record.op(), record.offset(), record.bytes(), record.at_ns());
        let expected = [
            (Op::Write, 4096, 4096, 1),
            (Op::Write, 12288, 8192, 2),
            (Op::Read, 4096, 4096, 3),
            (Op::Read, 12288, 8192, 3),
            (Op::Flush, 0, 0, 6),
        ];
        assert_eq!(left.records().iter().map(at).collect::<Vec<_>>(), expected);
        let (before, after) = (footprint(&trace, 4096), footprint(&left, 4096));
        assert_eq!((before.touched_pages, before.written_pages), (101, 3));
        assert_eq!((after.touched_pages, after.written_pages), (3, 3));
        assert!(left.notes().iter().any(|note| note == "1 trims left out, and 2 reads of pages that it never writes"));
    }
}
