//! Which write buffers are written out when one is needed.

use alloc::vec::Vec;

/// A policy of buffer replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// A full buffer before a partly filled one; of either the one that was taken first. LFTL's
    /// own.
    Fifo,
    /// The buffer that was used longest ago.
    Lru,
    /// All buffers of the logical block that was used longest ago, in ascending order; a block that
    /// was written from its first to its last page comes first (Kim and Ahn: BPLRU, FAST 2008).
    /// What a buffer lacks is read from flash before it is written, as under the other policies.
    BlockLru,
}

/// A buffer as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferView {
    /// Which one.
    pub index: usize,
    /// The logical page that it holds.
    pub lpn: u32,
    /// It has to be programmed before it can be used otherwise.
    pub dirty: bool,
    /// All of its sectors were written.
    pub full: bool,
    /// When it was given to the page.
    pub entered: u64,
    /// When it was read or written last.
    pub used: u64,
}

/// How soon a buffer leaves, or a logical block of buffers: the smallest is the first.
pub type Rank = (u8, u64);

impl Replacement {
    /// Every policy, by its name.
    pub const TABLE: [(&'static str, Self); 3] =
        [("fifo", Self::Fifo), ("lru", Self::Lru), ("block-lru", Self::BlockLru)];

    /// The buffers to write out, in order; none if there is none. `block_pages` is the length of a
    /// logical block.
    #[must_use]
    pub fn pick(self, buffers: &[BufferView], block_pages: u32) -> Vec<usize> {
        match self {
            Self::Fifo | Self::Lru => {
                buffers.iter().min_by_key(|view| self.rank(view)).map(|view| view.index).into_iter().collect()
            }
            Self::BlockLru => oldest_block(buffers, block_pages.max(1)),
        }
    }

    /// Whether it asks when a buffer was used, and not only when it was given to its page.
    #[must_use]
    pub const fn looks_at_use(self) -> bool {
        matches!(self, Self::Lru | Self::BlockLru)
    }

    /// Its name in [`Replacement::TABLE`].
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::TABLE.iter().find(|row| row.1 == self).map_or("", |row| row.0)
    }

    /// The rank of a buffer that leaves alone.
    pub(crate) const fn rank(self, view: &BufferView) -> Rank {
        match self {
            Self::Fifo => (fifo_class(view), view.entered),
            Self::Lru | Self::BlockLru => (0, view.used),
        }
    }
}

/// The rank of a logical block of so many pages, by its buffers in ascending order.
pub(crate) fn block_rank<'a>(block: impl Iterator<Item = &'a BufferView>, block_pages: u32) -> Rank {
    let (mut count, mut in_order, mut before, mut used) = (0, true, 0, 0);
    for view in block {
        in_order &= view.full && view.used >= before;
        before = view.used;
        used = used.max(view.used);
        count += 1;
    }
    (u8::from(!(in_order && count == block_pages)), used)
}

/// What costs least to take comes first: a clean buffer, a full one, a partly filled one.
const fn fifo_class(view: &BufferView) -> u8 {
    match (view.dirty, view.full) {
        (false, _) => 0,
        (true, true) => 1,
        (true, false) => 2,
    }
}

fn oldest_block(buffers: &[BufferView], block_pages: u32) -> Vec<usize> {
    let mut sorted: Vec<&BufferView> = buffers.iter().collect();
    sorted.sort_by_key(|view| view.lpn);
    let blocks = sorted.chunk_by(|a, b| a.lpn / block_pages == b.lpn / block_pages);
    blocks
        .min_by_key(|block| block_rank(block.iter().copied(), block_pages))
        .map(|block| block.iter().map(|view| view.index).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(index: usize, lpn: u32, full: bool, entered: u64, used: u64) -> BufferView {
        BufferView { index, lpn, dirty: true, full, entered, used }
    }

    #[test]
    fn fifo_takes_full_before_partial_and_old_before_young() {
        let buffers = [view(0, 9, false, 1, 1), view(1, 8, true, 5, 5), view(2, 7, true, 4, 9)];
        assert_eq!(Replacement::Fifo.pick(&buffers, 4), [2]);
        assert_eq!(Replacement::Fifo.pick(&buffers[..1], 4), [0]);
        let clean = BufferView { dirty: false, ..view(3, 6, false, 99, 99) };
        assert_eq!(Replacement::Fifo.pick(&[buffers[2], clean], 4), [3]);
        assert!(Replacement::Fifo.pick(&[], 4).is_empty());
    }

    #[test]
    fn lru_takes_what_was_used_longest_ago() {
        let buffers = [view(0, 9, false, 1, 7), view(1, 8, true, 5, 6), view(2, 7, true, 2, 9)];
        assert_eq!(Replacement::Lru.pick(&buffers, 4), [1]);
    }

    #[test]
    fn block_lru_takes_a_whole_block_in_order() {
        let buffers = [view(0, 5, true, 0, 1), view(1, 9, true, 0, 2), view(2, 4, false, 0, 8), view(3, 8, true, 0, 3)];
        assert_eq!(Replacement::BlockLru.pick(&buffers, 4), [3, 1], "block 2 was used at 3, block 1 at 8");
        assert!(Replacement::BlockLru.pick(&[], 4).is_empty());
    }

    #[test]
    fn block_lru_lets_go_of_a_block_written_in_sequence() {
        let mut buffers = alloc::vec![view(0, 20, true, 0, 1)];
        buffers.extend((0..4).map(|i| view(i + 1, i as u32, true, 0, 10 + i as u64)));
        assert_eq!(Replacement::BlockLru.pick(&buffers, 4), [1, 2, 3, 4]);
        buffers[3].used = 50;
        assert_eq!(Replacement::BlockLru.pick(&buffers, 4), [0], "out of order it is no sequence");
    }
}
