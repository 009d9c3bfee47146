//! Wear-levelling with forty bytes of state, whatever the size of the device (GeckoFTL, Appendix
//! D).
//!
//! 1. For every page programmed, the spare area of one block is read: how often the block was
//!    erased, and when. A scan of all blocks gives the average of both; then the next scan begins.
//! 2. Static: a block erased [`WearOptions::spread`] times less than the average, and not erased
//!    for longer than blocks are on average, holds data that rests on an unworn block. It is
//!    emptied into a worn block, if one is free, and takes part again.
//! 3. Dynamic: data that a collector moves goes to worn blocks if it was left alone for longer than
//!    such data is on average; everything else goes to the least worn block that is free.
//!
//! The paper judges pages by a timestamp of their last update. Here the sequence number says when a
//! page was programmed last, by an update or a move: a lower bound of the same, which costs no room
//! in the spare area.
//!
//! Erase counts are in spare areas, so power loss costs only the averages (they come back within a
//! scan) and the counts of the few blocks that are erased but hold nothing yet: those count as worn
//! as the average.

use crate::config::WearOptions;
use nand::BlockId;

/// Blocks that one call looks at, at most.
const STEP: u32 = 64;

/// Programs that scans may lag behind: more were done before levelling began.
const LAG: u32 = 1 << 16;

/// The state of levelling.
#[derive(Clone, Debug)]
pub struct Wear {
    options: WearOptions,
    /// The block looked at next.
    cursor: u32,
    /// Sequence number up to which programs have been paid for with scans, modulo 2^32.
    paid: u32,
    /// Blocks with data that this scan has seen, and the sums of their erase counts and ages.
    seen: u32,
    erases: u64,
    ages: u64,
    /// Averages of the last scan.
    mean_erases: u32,
    mean_age: u32,
    /// Programs between two moves of a page, or its write and its first move, on average.
    mean_stay: u32,
}

impl Wear {
    /// Nothing is known yet.
    #[must_use]
    pub const fn new(options: WearOptions) -> Self {
        Self { options, cursor: 0, paid: 0, seen: 0, erases: 0, ages: 0, mean_erases: 0, mean_age: 0, mean_stay: 0 }
    }

    /// Blocks to look at now, for the programs done until the sequence number `seq`.
    pub fn due(&mut self, seq: u64) -> u32 {
        let programs = (seq as u32).wrapping_sub(self.paid);
        self.paid = if programs > LAG { seq as u32 } else { self.paid.wrapping_add(programs.min(STEP)) };
        debug_assert!((seq as u32).wrapping_sub(self.paid) <= LAG, "scans lag further behind than they may");
        programs.min(STEP) * self.options.scans
    }

    /// The block to look at next, of so many.
    pub fn next_block(&mut self, blocks: u32) -> BlockId {
        if self.cursor >= blocks {
            let seen = u64::from(self.seen.max(1));
            self.mean_erases = (self.erases / seen) as u32;
            self.mean_age = (self.ages / seen) as u32;
            (self.cursor, self.seen, self.erases, self.ages) = (0, 0, 0, 0);
        }
        self.cursor += 1;
        debug_assert!(self.cursor <= blocks);
        BlockId(self.cursor - 1)
    }

    /// Takes note of a block with data; answers whether its data should move to a worn block.
    pub fn note(&mut self, erase_count: u32, age: u32) -> bool {
        self.seen += 1;
        self.erases += u64::from(erase_count);
        self.ages += u64::from(age);
        erase_count.saturating_add(self.options.spread) <= self.mean_erases && age > self.mean_age
    }

    /// Whether a block erased so often is a place for data at rest. Without one, moving such data
    /// would only have to be done again.
    #[must_use]
    pub const fn is_worn(&self, erase_count: u32) -> bool {
        erase_count >= self.mean_erases
    }

    /// Whether a page that a collector moves, `stay` programs after it was programmed, has settled.
    pub fn has_settled(&mut self, stay: u64) -> bool {
        let stay = u32::try_from(stay).unwrap_or(u32::MAX);
        let settled = stay > self.mean_stay;
        self.mean_stay = (i64::from(self.mean_stay) + (i64::from(stay) - i64::from(self.mean_stay)) / 64) as u32;
        settled
    }

    /// Bytes of RAM held, options included.
    #[must_use]
    pub const fn ram_bytes(&self) -> u64 {
        size_of::<Self>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_within_the_papers_bound() {
        assert!(size_of::<Wear>() - size_of::<WearOptions>() <= 40);
    }

    #[test]
    fn a_block_moves_if_it_is_unworn_and_rests() {
        let mut wear = Wear::new(WearOptions { spread: 5, scans: 1 });
        assert_eq!(wear.due(1_000_000), STEP, "a device that was used before");
        assert_eq!(wear.due(1_000_004), 4);
        assert_eq!(wear.due(1_000_004), 0);
        for block in 0..4 {
            assert_eq!(wear.next_block(4), BlockId(block));
            assert!(!wear.note([0, 10, 10, 20][block as usize], 50), "the average is not known yet");
        }
        assert_eq!(wear.next_block(4), BlockId(0));
        assert!(wear.note(5, 51));
        assert!(!wear.note(6, 51), "worn enough");
        assert!(!wear.note(5, 50), "not at rest");
    }

    #[test]
    fn sequence_numbers_may_pass_two_to_the_32() {
        let mut wear = Wear::new(WearOptions { spread: 5, scans: 2 });
        wear.due(u64::from(u32::MAX));
        assert_eq!(wear.due(u64::from(u32::MAX) + 3), 6);
    }

    #[test]
    fn pages_that_stay_longer_than_others_have_settled() {
        let mut wear = Wear::new(WearOptions { spread: 5, scans: 1 });
        for _ in 0..1000 {
            wear.has_settled(1000);
        }
        assert!(wear.has_settled(5000));
        assert!(!wear.has_settled(500));
    }
}
