//! What a write buffer holds of which pages, without the contents.
//!
//! 1. A page enters with the first write to it and gathers what is written to it until it leaves.
//! 2. A sector that one write covered is held; one that a write only touched is held together with
//!    what flash has of it. A page of which all sectors are held is complete.
//! 3. Nothing is clean: a page that was written out has left.
//!
//! Which page leaves is [`Replacement::pick`]'s choice. It is kept in order here, so that finding
//! it takes the logarithm of the pages held.

use crate::replacement::{BufferView, Rank, Replacement, block_rank};
use crate::sectors::Sectors;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;

/// How much of what is read a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing; flash has it.
    Nothing,
    /// A part; flash has the rest.
    Part,
    /// All of it.
    All,
}

/// What came of a write.
#[derive(Debug, PartialEq, Eq)]
pub struct Written<'a, T> {
    /// The page was held before.
    pub hit: bool,
    /// What is kept with the page.
    pub kept: &'a mut T,
}

/// A page that has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<T> {
    /// All of it was held: flash need not be read to write it.
    pub complete: bool,
    /// What was kept with it.
    pub kept: T,
}

struct Held<T> {
    view: BufferView,
    /// Sectors that are held.
    whole: u64,
    /// Those, and the ones of which a part is.
    touched: u64,
    kept: T,
}

/// A write buffer. With each page the caller keeps a `T`.
pub struct WriteBuffer<T> {
    policy: Replacement,
    room: usize,
    sectors: Sectors,
    block_pages: u32,
    held: BTreeMap<u32, Held<T>>,
    /// Pages by rank; logical blocks under a policy that writes out whole ones.
    order: BTreeSet<(Rank, u32)>,
    /// Ranks of logical blocks, under such a policy.
    blocks: BTreeMap<u32, Rank>,
    clock: u64,
}

impl<T> WriteBuffer<T> {
    /// An empty buffer with room for so many pages, of a device whose blocks have `block_pages` of
    /// them.
    #[must_use]
    pub fn new(policy: Replacement, room: u32, page_bytes: u32, block_pages: u32) -> Self {
        Self {
            policy,
            room: room as usize,
            sectors: Sectors::new(page_bytes),
            block_pages: block_pages.max(1),
            held: BTreeMap::new(),
            order: BTreeSet::new(),
            blocks: BTreeMap::new(),
            clock: 0,
        }
    }

    /// Pages held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether no page is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// How pages are parted.
    #[must_use]
    pub const fn sectors(&self) -> Sectors {
        self.sectors
    }

    /// What is kept with a page; none if it is not held.
    #[must_use]
    pub fn kept(&self, page: u32) -> Option<&T> {
        self.held.get(&page).map(|held| &held.kept)
    }

    /// Takes these bytes of a page. A page that was not held enters with `enter`'s. None, and
    /// nothing is done, if there is no room for it: something has to leave first.
    pub fn write(&mut self, page: u32, part: &Range<u64>, enter: impl FnOnce() -> T) -> Option<Written<'_, T>> {
        let hit = self.held.contains_key(&page);
        if !hit {
            if self.held.len() >= self.room {
                return None;
            }
            let index = page as usize;
            let view = BufferView { index, lpn: page, dirty: true, full: false, entered: self.clock, used: 0 };
            self.held.insert(page, Held { view, whole: 0, touched: 0, kept: enter() });
        }
        let (all, touched, covered) = (self.sectors.all(), self.sectors.touched(part), self.sectors.covered(part));
        self.change(page, hit, |held| {
            held.touched |= touched;
            held.whole |= covered;
            held.view.full = held.whole == all;
        });
        self.held.get_mut(&page).map(|held| Written { hit, kept: &mut held.kept })
    }

    /// How much of these bytes of a page is held; a page of which any is, is used by that.
    pub fn read(&mut self, page: u32, part: &Range<u64>) -> Found {
        let Some(held) = self.held.get(&page) else { return Found::Nothing };
        let wanted = self.sectors.touched(part);
        let found = match (held.touched & wanted, held.whole & wanted) {
            (0, _) => return Found::Nothing,
            (_, whole) if whole == wanted => Found::All,
            _ => Found::Part,
        };
        self.change(page, true, |_| ());
        found
    }

    /// A page leaves; none if it is not held.
    pub fn take(&mut self, page: u32) -> Option<Taken<T>> {
        let held = self.held.remove(&page)?;
        if self.policy == Replacement::BlockLru {
            self.rank_block(page);
        } else {
            self.order.remove(&(self.policy.rank(&held.view), page));
        }
        Some(Taken { complete: held.view.full, kept: held.kept })
    }

    /// The pages that are to leave next, in the order in which they are to be written; none if none
    /// is held.
    #[must_use]
    pub fn next(&self) -> Vec<u32> {
        let Some(&(_, first)) = self.order.first() else { return Vec::new() };
        if self.policy == Replacement::BlockLru {
            self.held.range(self.pages_of(first)).map(|(page, _)| *page).collect()
        } else {
            alloc::vec![first]
        }
    }

    /// The pages held of a range of pages, in ascending order.
    pub fn within(&self, pages: Range<u32>) -> impl Iterator<Item = u32> {
        self.held.range(pages).map(|(page, _)| *page)
    }

    /// The buffers as a policy sees them, in ascending order of their pages.
    pub fn views(&self) -> impl Iterator<Item = BufferView> {
        self.held.values().map(|held| held.view)
    }

    /// Pages of a logical block; the last block may end with the last page that can be named.
    fn pages_of(&self, block: u32) -> Range<u32> {
        let first = block * self.block_pages;
        first..first.saturating_add(self.block_pages)
    }

    /// A page is used, and put where it belongs in the order; it had a place there if it was
    /// `known`.
    fn change(&mut self, page: u32, known: bool, change: impl FnOnce(&mut Held<T>)) {
        let Some(held) = self.held.get_mut(&page) else { return };
        let before = self.policy.rank(&held.view);
        change(held);
        held.view.used = self.clock;
        let after = self.policy.rank(&held.view);
        self.clock += 1;
        if self.policy == Replacement::BlockLru {
            self.rank_block(page);
        } else {
            if known {
                self.order.remove(&(before, page));
            }
            self.order.insert((after, page));
        }
    }

    /// Puts the block of a page where it belongs in the order now.
    fn rank_block(&mut self, page: u32) {
        let number = page / self.block_pages;
        if let Some(before) = self.blocks.remove(&number) {
            self.order.remove(&(before, number));
        }
        let mut views = self.held.range(self.pages_of(number)).map(|(_, held)| &held.view).peekable();
        if views.peek().is_some() {
            let rank = block_rank(views, self.block_pages);
            self.order.insert((rank, number));
            self.blocks.insert(number, rank);
        }
    }
}
