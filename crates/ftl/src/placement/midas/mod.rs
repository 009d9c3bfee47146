//! `MiDAS`: groups in a chain, as many and as large as a model of update intervals says.
//!
//! 1. A page that the host writes goes to group 1; one that is hot to the hot group, if there is
//!    one. A page that a collector moves goes one group further, until the last.
//! 2. All groups but the last are queues: once a group has more blocks than the model gives it, its
//!    oldest block is collected. If none has, the victim policy chooses among the other blocks. The
//!    last group fills several streams, so that what is moved within it stays apart.
//! 3. Each page has a heat from 0 to 3. A write by the host heats it by one. A move out of group 1
//!    cools it by one, a move out of the hot group by two. At 3 a page is hot.
//! 4. Of some pages, chosen by chance, the time of the last write is kept, and the intervals
//!    between writes are counted, hot pages apart from others. After as many writes as the disk has
//!    pages the model ([`model`]) tries sizes of groups, one a write. The best are taken if they
//!    would program less than was programmed of late.
//! 5. A group of which another share lives than the model said, by more than a tenth, becomes the
//!    last.
//!
//! The original finds out whether a page is hot from the group and age of its present copy, and
//! sizes the hot group after all others. Here RAM holds two bits a page for that, and one model
//! sizes all. A block in which nothing lives waits in no queue. All of it is in RAM only: after a
//! mount every block counts as one of the last group, which costs write amplification and nothing
//! else.

mod intervals;
mod model;

use super::{Cause, Entry, PageWrite, Placement, Stream};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use intervals::Intervals;
use model::{GROUPS, Groups, Model, QUEUES, Search};
use nand::{BlockId, Geometry, Lpn};

/// Pages of which the time of the last write is kept, at most.
const SAMPLES: usize = 8192;

/// Logical pages whose heat a byte holds.
const PAGES_PER_BYTE: usize = 4;

/// The heat of a hot page.
const HOT: u8 = 3;

/// A block that no stream has filled since it was erased.
const NONE: u8 = u8::MAX;

/// Writes between two models, at least.
const WINDOW_MIN: u32 = 64;

/// Streams that the last group fills, at most.
const LAST_STREAMS: u8 = 3;

/// Blocks that have to leave a group before what lives in them counts.
const LEFT_MIN: u32 = 16;

/// By how much the share that lives may differ from the model's.
const DIFFERS: f64 = 0.1;

pub(super) const ENTRY: Entry = Entry {
    name: "midas",
    summary: "six streams in a chain, sized by a model of update intervals; it names victims",
    source: "Oh et al., MIDAS: minimizing write amplification through adaptive group number and size, FAST 2024",
    settings: &[],
    knows_future: false,
    make: |config, geometry, _| Box::new(Midas::new(config.logical_pages, geometry)),
};

struct Midas {
    /// Pages written by the host, modulo 2^31; 0 is never.
    now: u32,
    /// Two bits for each logical page.
    heat: Vec<u8>,
    /// Of sampled pages: twice the time of the last write, and one if the page was hot then.
    written: Vec<u32>,
    /// One page of 2^shift is sampled.
    shift: u32,
    hot: Intervals,
    others: Intervals,
    model: Model,
    search: Option<Search>,
    groups: Groups,
    /// The group that fills each block.
    group: Vec<u8>,
    /// Blocks of each group.
    blocks: [u32; GROUPS],
    seen: Seen,
    window: u32,
    pages_per_block: u32,
}

/// What was seen since the last model.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    writes: u32,
    moves: u32,
    /// Blocks that left each queue, and pages that lived in them.
    left: [u32; QUEUES],
    lived: [u32; QUEUES],
    /// Groups were changed meanwhile.
    is_settling: bool,
}

impl Midas {
    fn new(logical_pages: u32, geometry: &Geometry) -> Self {
        let (blocks, pages) = (geometry.blocks(), geometry.pages_per_block());
        let shift = (0..).find(|shift| (logical_pages >> shift) as usize <= SAMPLES).unwrap_or(0);
        // Free blocks, blocks that are half filled, and metadata hold no data.
        let holding = blocks - blocks / 64 - blocks.min(GROUPS as u32);
        Self {
            now: 0,
            heat: vec![0; (logical_pages as usize).div_ceil(PAGES_PER_BYTE)],
            written: vec![0; (logical_pages >> shift) as usize + 1],
            shift,
            hot: Intervals::new(),
            others: Intervals::new(),
            model: Model::new(pages, logical_pages, holding),
            search: None,
            groups: Groups::ONE,
            group: vec![NONE; blocks as usize],
            blocks: [0; GROUPS],
            seen: Seen::default(),
            window: logical_pages.max(WINDOW_MIN),
            pages_per_block: pages,
        }
    }

    /// The last stream, to which pages go that were moved most often.
    fn last(&self) -> u8 {
        (self.groups.last() + LAST_STREAMS - 1).min(GROUPS as u8 - 1)
    }

    /// Heats a page, or cools it; answers how hot it is now.
    #[inline]
    fn heat(&mut self, lpn: Lpn, change: impl FnOnce(u8) -> u8) -> u8 {
        let (byte, shift) = (lpn.index() / PAGES_PER_BYTE, 2 * (lpn.0 % PAGES_PER_BYTE as u32));
        let was = self.heat[byte] >> shift & 3;
        let is = change(was).min(HOT);
        self.heat[byte] ^= (was ^ is) << shift;
        is
    }

    /// Counts the interval of a page that is sampled.
    #[inline]
    fn sample(&mut self, lpn: Lpn, is_hot: bool) {
        let slot = lpn.0 >> self.shift;
        let chosen = slot.wrapping_mul(0x9E37_79B9) >> 16;
        let mask = (1 << self.shift) - 1;
        if (lpn.0 ^ chosen) & mask != 0 {
            return;
        }
        let last = &mut self.written[slot as usize];
        let (at, was_hot) = (*last >> 1, *last & 1 == 1);
        let interval = (at > 0).then(|| self.now.wrapping_sub(at));
        *last = self.now << 1 | u32::from(is_hot);
        // The version that ends now went where its page belonged when it was written.
        if was_hot { self.hot.note(interval) } else { self.others.note(interval) }
    }

    fn host(&mut self, lpn: Lpn) -> Stream {
        self.now = (self.now + 1).min(u32::MAX >> 1);
        if self.now == u32::MAX >> 1 {
            self.now = 1;
            self.written.fill(0);
        }
        self.seen.writes += 1;
        let is_hot = self.heat(lpn, |was| was + 1) == HOT;
        self.sample(lpn, is_hot);
        Stream(u8::from(!(is_hot && self.groups.blocks[0] > 0)))
    }

    fn moved(&mut self, write: &PageWrite) -> Stream {
        let group = write.from.map_or(NONE, |block| self.group[block.index()]);
        let last = self.last();
        if write.cause == Cause::Refresh {
            return Stream(group.clamp(1, last));
        }
        self.seen.moves += 1;
        if let Some(lived) = self.seen.lived.get_mut(usize::from(group)) {
            *lived += 1;
        }
        match group {
            0 => self.heat(write.lpn, |was| was.saturating_sub(2)),
            1 => self.heat(write.lpn, |was| was.saturating_sub(1)),
            _ => 0,
        };
        // What is known of no block's group counts as of the last.
        Stream(group.saturating_add(1).min(last))
    }

    /// Makes the first queue the last group of which other shares live than was said.
    fn check(&mut self) {
        let Seen { left, lived, .. } = self.seen;
        let differs = |queue: &usize| {
            let pages = f64::from(left[*queue]) * f64::from(self.pages_per_block);
            let said = f64::from(self.groups.live[*queue]);
            left[*queue] >= LEFT_MIN && (f64::from(lived[*queue]) / pages - said).abs() > DIFFERS
        };
        if let Some(queue) = (0..QUEUES).filter(|queue| self.groups.blocks[*queue] > 0).find(differs) {
            let end = if queue == 0 { 1 } else { QUEUES };
            self.groups.blocks[queue..end].fill(0);
        }
    }

    /// Ends a window: the groups are checked, and the model begins anew.
    fn end_window(&mut self) {
        if !self.seen.is_settling {
            self.check();
        }
        self.model.learn(&self.hot, &self.others);
        self.search = Some(Search::new());
    }

    /// Takes over groups that would program less than was programmed.
    fn decide(&mut self, best: Groups) {
        let Seen { writes, moves, .. } = self.seen;
        let programmed = 1.0 + f64::from(moves) / f64::from(writes.max(1));
        let is_better = best.amplification < programmed;
        if is_better {
            self.groups = best;
        }
        self.search = None;
        self.seen = Seen { is_settling: is_better, ..Seen::default() };
        self.hot.fade();
        self.others.fade();
    }
}

impl Placement for Midas {
    fn streams(&self) -> u8 {
        GROUPS as u8
    }

    #[inline]
    fn place(&mut self, write: &PageWrite) -> Stream {
        if write.cause == Cause::Host { self.host(write.lpn) } else { self.moved(write) }
    }

    fn follows_blocks(&self) -> bool {
        true
    }

    fn names_victims(&self) -> bool {
        true
    }

    fn queues(&self) -> u8 {
        let sizes = (0_u8..).zip(&self.groups.blocks);
        sizes.filter(|(_, blocks)| **blocks > 0).fold(0, |queues, (queue, _)| queues | 1 << queue)
    }

    fn overfull(&self) -> Option<Stream> {
        let sizes = (0_u8..).zip(self.groups.blocks.iter().zip(&self.blocks));
        let full = sizes.filter(|(_, (size, blocks))| **size > 0 && blocks > size);
        full.map(|(queue, _)| Stream(queue)).next()
    }

    fn idle(&mut self, budget: u32) -> bool {
        for _ in 0..budget {
            match &mut self.search {
                Some(search) => {
                    if let Some(best) = search.step(&self.model) {
                        self.decide(best);
                    }
                }
                None if self.seen.writes >= self.window => self.end_window(),
                None => return false,
            }
        }
        true
    }

    #[inline]
    fn placed(&mut self, stream: Stream, block: BlockId) {
        debug_assert!(stream.0 < self.streams(), "{stream:?} is none of this policy");
        let group = &mut self.group[block.index()];
        if *group == stream.0 {
            return;
        }
        if let Some(blocks) = self.blocks.get_mut(usize::from(*group)) {
            *blocks -= 1;
        }
        *group = stream.0;
        self.blocks[usize::from(stream.0)] += 1;
    }

    fn emptied(&mut self, block: BlockId) {
        let group = usize::from(core::mem::replace(&mut self.group[block.index()], NONE));
        if let Some(blocks) = self.blocks.get_mut(group) {
            *blocks -= 1;
        }
        if let Some(left) = self.seen.left.get_mut(group) {
            *left += 1;
        }
    }

    fn ram_bytes(&self) -> u64 {
        let tables = self.hot.ram_bytes() + self.others.ram_bytes() + self.model.ram_bytes();
        (self.heat.capacity() + 4 * self.written.capacity() + self.group.capacity() + tables) as u64
    }
}

#[cfg(test)]
mod tests;
