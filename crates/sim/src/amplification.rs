//! What write-amplification means here.
//!
//! Two forms, both per page that the host wrote (a partly written page counts as one) and both
//! split by purpose so that the parts add up to the whole:
//!
//! - **programs per write**: pages programmed, the host's own included. Erases, reads and programs
//!   of flags alone do not count.
//! - **paper**: the form of GeckoFTL, section 5, `i_writes + i_reads / δ`, where δ is how many
//!   reads a program takes as long as: 1 + 1/δ for a flash-resident validity bitmap that costs one
//!   program and one read an update. Here: programs + reads/δ + spare reads/(32 δ). A spare area
//!   read alone counts a thirty-second of a page read. A program of flags counts 1: its array time
//!   is that of a page. The host's own program counts 1. Page reads of purpose `host` count only as
//!   far as a partly written page needed its old contents; reading for the host's read requests is
//!   not amplification. What such requests cause elsewhere (a translation page fetched for a read)
//!   does count: compare runs with the same share of reads.

use crate::result::{AmplificationResult, ByPurpose, PurposeAmplification};
use ftl::{Counts, Purpose};

/// Spare-area reads that count as much as one page read.
pub const SPARE_READS_A_READ: f64 = 32.0;

/// Write-amplification of `counts` over `writes` host pages, of which `rmw_reads` had their old
/// contents read. All zero if nothing was written.
#[must_use]
pub fn amplification(counts: &Counts, writes: u64, rmw_reads: u64, delta: f64) -> AmplificationResult {
    let per_write = |x: f64| if writes == 0 { 0.0 } else { x / writes as f64 };
    let by_purpose = ByPurpose::from_fn(|purpose| {
        let c = counts.of(purpose);
        let reads = if purpose == Purpose::Host { c.reads.min(rmw_reads) } else { c.reads };
        let read_cost = (reads as f64 + c.spare_reads as f64 / SPARE_READS_A_READ) / delta;
        PurposeAmplification {
            programs: per_write(c.programs as f64),
            paper: per_write((c.programs + c.flag_programs) as f64 + read_cost),
        }
    });
    AmplificationResult {
        programs_per_write: by_purpose.iter().map(|(_, p)| p.programs).sum(),
        paper: by_purpose.iter().map(|(_, p)| p.paper).sum(),
        delta,
        by_purpose,
    }
}
