//! What the spare area of a page says beyond its logical page, under block mapping with log blocks:
//! who wrote it, and of which write it is a copy. It takes the field `aux`.
//!
//! Two copies of a logical page with the same root hold the same contents. So a merge or a
//! collection that power loss cut short can be taken back, however often the attempt is cut short
//! itself.

use nand::Spare;

/// On whose behalf a page was programmed. The numbers are part of the flash format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Writer {
    /// The host, to the page's place in a data block.
    Home = 0,
    /// The host or a collector, to a log block; or a merge that completes a log block.
    Log = 1,
    /// The host or a collector, to a page-mapped area.
    Paged = 2,
    /// A merge, to a block that was free when it began.
    Merge = 3,
}

/// What `aux` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Who programmed the page.
    pub writer: Writer,
    /// Nothing is left to be copied by the merge that copied the page, or lives in the block from
    /// which a collector copied it.
    pub last: bool,
    /// The low bits of the sequence number that the page had when the host wrote it.
    pub root: u32,
}

const ROOT_BITS: u32 = 29;
const ROOT_MASK: u32 = (1 << ROOT_BITS) - 1;
const LAST: u32 = 1 << 31;

/// The root of a page that the host writes with this sequence number.
#[inline]
#[must_use]
pub const fn root_of_write(seq: u64) -> u32 {
    seq as u32 & ROOT_MASK
}

/// The sequence number that a page had when the host wrote it, from its root and the sequence
/// number of a copy of it, which is larger by less than 2^29.
#[must_use]
pub const fn written_at(root: u32, seq: u64) -> u64 {
    debug_assert!(root <= ROOT_MASK);
    seq.saturating_sub((seq as u32).wrapping_sub(root) as u64 & ROOT_MASK as u64)
}

impl Mark {
    /// As the spare area holds it.
    #[inline]
    #[must_use]
    pub const fn encode(self) -> u32 {
        debug_assert!(self.root <= ROOT_MASK);
        (if self.last { LAST } else { 0 }) | (self.writer as u32) << ROOT_BITS | self.root & ROOT_MASK
    }

    /// From a spare area's `aux`.
    #[inline]
    #[must_use]
    pub const fn decode(aux: u32) -> Self {
        let writer = match aux >> ROOT_BITS & 3 {
            0 => Writer::Home,
            1 => Writer::Log,
            2 => Writer::Paged,
            _ => Writer::Merge,
        };
        Self { writer, last: aux & LAST != 0, root: aux & ROOT_MASK }
    }

    /// Whether the page with this spare area is a copy, not what the host wrote.
    #[must_use]
    pub const fn is_copy(spare: &Spare) -> bool {
        Self::decode(spare.aux).root != root_of_write(spare.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_tells_when_the_host_wrote() {
        for (written, later) in [(5, 0), (5, 90), (0x2FFF_FFFF, 7), (0x9_1234_5678, ROOT_MASK as u64)] {
            assert_eq!(written_at(root_of_write(written), written + later), written);
        }
        assert_eq!(written_at(9, 4), 0, "a root that no write can have had");
    }

    #[test]
    fn marks_round_trip() {
        for writer in [Writer::Home, Writer::Log, Writer::Paged, Writer::Merge] {
            for last in [false, true] {
                for root in [0, 77, ROOT_MASK] {
                    let mark = Mark { writer, last, root };
                    assert_eq!(Mark::decode(mark.encode()), mark);
                }
            }
        }
    }
}
