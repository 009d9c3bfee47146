//! The most that one request does, by formula: what each FTL promises of its longest request.
//!
//! A bound holds while no operation fails, no page is about to fade and no wear is levelled. Parts
//! say what they do at most for so many changes ([`crate::mapping::Mapping::most_work`],
//! [`crate::validity::Validity::most_work`]), engines add collections or merges, and a row of the
//! table names the formula. `docs/BOUNDS.md` has them all; a test holds every request to them.

use crate::config::Config;
use nand::Geometry;

/// The most flash operations of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Most {
    /// Pages read, spare areas read alone among them.
    pub reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl Most {
    /// Nothing at all.
    pub const NONE: Self = Self { reads: 0, programs: 0, erases: 0 };

    /// So many reads and programs, and no erase.
    #[must_use]
    pub const fn pages(reads: u64, programs: u64) -> Self {
        Self { reads, programs, erases: 0 }
    }

    /// The sum of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads.saturating_add(other.reads),
            programs: self.programs.saturating_add(other.programs),
            erases: self.erases.saturating_add(other.erases),
        }
    }

    /// The larger of both, of each kind.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            reads: self.reads.max(other.reads),
            programs: self.programs.max(other.programs),
            erases: self.erases.max(other.erases),
        }
    }

    /// So many times as much.
    #[must_use]
    pub const fn times(self, n: u64) -> Self {
        Self {
            reads: self.reads.saturating_mul(n),
            programs: self.programs.saturating_mul(n),
            erases: self.erases.saturating_mul(n),
        }
    }
}

/// The most that one request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// A write of one page.
    pub write: Most,
    /// A read of one page.
    pub read: Most,
    /// A flush.
    pub flush: Most,
}

impl Bound {
    /// A trim of so many pages: at most what as many writes do.
    #[must_use]
    pub const fn trim(&self, pages: u32) -> Most {
        self.write.times(pages as u64)
    }
}

/// The formula of an FTL.
#[derive(Clone, Copy, Debug)]
pub struct Formula {
    /// The pages that a write programs at most, in the symbols of `docs/BOUNDS.md`.
    pub programs: &'static str,
    /// What the longest write does, and what it grows with.
    pub longest: &'static str,
    /// The bound on a device; `None` if nothing can be promised there but that a write gives up.
    pub most: fn(&Geometry, &Config) -> Option<Bound>,
}
