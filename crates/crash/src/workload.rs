//! What a host does while power is cut: a short sequence from a seed, plain enough to be shrunk and
//! written into an id.

use crate::rng::Rng;
use core::fmt;

/// One thing that a host does. Addresses are taken modulo the size of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Writes so many pages, one after the other; each is acknowledged by itself.
    Write {
        /// The first page.
        lpn: u32,
        /// How many.
        count: u32,
    },
    /// Trims so many pages at once.
    Trim {
        /// The first page.
        lpn: u32,
        /// How many.
        count: u32,
    },
    /// Reads a page.
    Read {
        /// The page.
        lpn: u32,
    },
    /// Flushes.
    Flush,
    /// Lets the FTL do one unit of background work.
    Idle,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { lpn, count: 1 } => write!(f, "write {lpn}"),
            Self::Write { lpn, count } => write!(f, "write {lpn}+{count}"),
            Self::Trim { lpn, count } => write!(f, "trim {lpn}+{count}"),
            Self::Read { lpn } => write!(f, "read {lpn}"),
            Self::Flush => f.write_str("flush"),
            Self::Idle => f.write_str("idle"),
        }
    }
}

/// As [`generate`], but every page is written first, and a trim takes up to half of all pages:
/// whole blocks die of it.
#[must_use]
pub fn generate_with_long_trims(seed: u64, steps: u32, logical_pages: u32) -> Vec<Step> {
    let mut rng = Rng::new(seed, 0x5452);
    let mut work = generate(seed, steps, logical_pages);
    work.insert(0, Step::Write { lpn: 0, count: logical_pages });
    for step in &mut work {
        if let Step::Trim { count, .. } = step {
            *count = 1 + rng.below(logical_pages.div_ceil(2));
        }
    }
    work
}

/// A workload over so many logical pages: half of the writes go to an eighth of them, now and then
/// a run of neighbours.
#[must_use]
pub fn generate(seed: u64, steps: u32, logical_pages: u32) -> Vec<Step> {
    let mut rng = Rng::new(seed, 0x5745);
    let hot = logical_pages.div_ceil(8);
    let start = rng.below(logical_pages);
    (0..steps)
        .map(|_| {
            let lpn = if rng.one_in(2) { (start + rng.below(hot)) % logical_pages } else { rng.below(logical_pages) };
            match rng.below(64) {
                0..=31 => Step::Write { lpn, count: 1 },
                32..=43 => Step::Write { lpn, count: 2 + rng.below(6) },
                44 => Step::Write { lpn, count: logical_pages / 3 + 1 },
                45..=48 => Step::Trim { lpn, count: 1 + rng.below(6) },
                49..=53 => Step::Flush,
                54..=57 => Step::Idle,
                _ => Step::Read { lpn },
            }
        })
        .collect()
}
