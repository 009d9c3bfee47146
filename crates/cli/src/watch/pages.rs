//! What every page of the device holds, kept up to date operation by operation.
//!
//! The newest copy of a logical page is the live one, whether or not the FTL knows yet that the
//! others died. Pages of metadata live if a directory of the FTL leads there.

use super::seen::Seen;
use ftl::{Op, OpKind, Purpose};
use nand::{BlockId, Geometry, PageKind, Ppn, Spare};
use std::collections::BTreeMap;

/// What a page is to somebody who looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Erased.
    Free,
    /// It holds this, and is needed.
    Live(PageKind),
    /// It holds this, and nobody needs it.
    Dead(PageKind),
}

#[derive(Clone, Copy, Debug)]
struct Page {
    kind: PageKind,
    tag: u32,
    seq: u64,
}

/// Every page of a device.
pub struct Pages {
    geometry: Geometry,
    pages: Vec<Option<Page>>,
    /// Where the newest copy of each logical page is.
    newest: Vec<Ppn>,
    /// Metadata to which a directory leads, or that was programmed since one was looked at.
    needed: Vec<bool>,
    /// The sequence number of pages whose spare area was gone before it could be read.
    next: u64,
}

impl Pages {
    /// The pages of a device, as their spare areas say.
    pub fn new(geometry: Geometry, logical_pages: u32, mut spare: impl FnMut(Ppn) -> Option<Spare>) -> Self {
        let count = geometry.pages() as usize;
        let mut all = Self {
            geometry,
            pages: vec![None; count],
            newest: vec![Ppn::NONE; logical_pages as usize],
            needed: vec![false; count],
            next: 0,
        };
        for ppn in (0..geometry.pages()).map(Ppn) {
            if let Some(Spare { kind, tag, seq, .. }) = spare(ppn) {
                all.put(ppn, Page { kind, tag, seq });
            }
        }
        all
    }

    /// What a page is.
    pub fn look(&self, ppn: Ppn) -> Look {
        match self.pages[ppn.index()] {
            None => Look::Free,
            Some(page) if self.lives(ppn, page) => Look::Live(page.kind),
            Some(page) => Look::Dead(page.kind),
        }
    }

    /// The logical page that a page holds, if it is one of host data.
    pub fn logical(&self, ppn: Ppn) -> Option<u32> {
        self.pages[ppn.index()].filter(|page| page.kind == PageKind::User).map(|page| page.tag)
    }

    /// Live pages of a block.
    pub fn live(&self, block: BlockId) -> u32 {
        let offsets = 0..self.geometry.pages_per_block();
        let looks = offsets.map(|offset| self.look(self.geometry.page_at(block, offset)));
        looks.filter(|look| matches!(look, Look::Live(_))).count() as u32
    }

    fn lives(&self, ppn: Ppn, page: Page) -> bool {
        if page.kind == PageKind::User {
            self.newest.get(page.tag as usize) == Some(&ppn)
        } else {
            self.needed[ppn.index()]
        }
    }

    fn put(&mut self, ppn: Ppn, page: Page) {
        self.next = self.next.max(page.seq + 1);
        if page.kind == PageKind::User
            && let Some(newest) = self.newest.get_mut(page.tag as usize)
        {
            let before = newest.is_some().then(|| self.pages[newest.index()]).flatten();
            if before.is_none_or(|before| before.seq <= page.seq || before.tag != page.tag) {
                *newest = ppn;
            }
        }
        self.pages[ppn.index()] = Some(page);
        self.needed[ppn.index()] = true;
    }

    /// Does an operation. `spare` is what is written beside the page now, if it still is, and
    /// `host` the logical page that the host writes.
    pub fn apply(&mut self, op: &Op, spare: Option<Spare>, host: Option<u32>) {
        match op.kind {
            OpKind::Read | OpKind::SpareRead | OpKind::Flags => {}
            OpKind::Program => {
                let seq = self.next;
                let kind = kind_for(op.purpose);
                let page = match (spare, host) {
                    (Some(Spare { kind, tag, seq, .. }), _) => Page { kind, tag, seq },
                    (None, Some(tag)) if kind == PageKind::User => Page { kind, tag, seq },
                    (None, _) => Page { kind, tag: u32::MAX, seq },
                };
                self.put(op.page, page);
            }
            OpKind::Copy => {
                if let Some(page) = self.pages[op.from.index()] {
                    let seq = self.next;
                    self.put(op.page, Page { seq, ..page });
                    self.needed[op.from.index()] = false;
                }
            }
            OpKind::Erase => {
                let block = self.geometry.block_of(op.page);
                for offset in 0..self.geometry.pages_per_block() {
                    self.pages[self.geometry.page_at(block, offset).index()] = None;
                }
            }
        }
    }

    /// The host forgot logical pages.
    pub fn trim(&mut self, first: u32, count: u32) {
        let from = (first as usize).min(self.newest.len());
        let to = from.saturating_add(count as usize).min(self.newest.len());
        self.newest[from..to].fill(Ppn::NONE);
    }

    /// Takes over which metadata lives, as the FTL says. Of kinds that it says nothing about, the
    /// newest page of each tag lives.
    pub fn settle(&mut self, seen: &Seen) {
        let said: Vec<PageKind> =
            seen.metadata.iter().filter_map(|ppn| self.pages[ppn.index()].map(|page| page.kind)).collect();
        let mut newest = BTreeMap::new();
        for page in self.pages.iter().flatten().filter(|page| page.kind != PageKind::User) {
            let seq = newest.entry((page.kind as u8, page.tag)).or_insert(0);
            *seq = page.seq.max(*seq);
        }
        for (page, needed) in self.pages.iter().zip(&mut self.needed) {
            *needed = page.is_some_and(|page| {
                !said.contains(&page.kind) && newest.get(&(page.kind as u8, page.tag)) == Some(&page.seq)
            });
        }
        for ppn in &seen.metadata {
            self.needed[ppn.index()] = true;
        }
    }
}

/// What is programmed for a purpose, as a rule.
const fn kind_for(purpose: Purpose) -> PageKind {
    match purpose {
        Purpose::Host | Purpose::Gc | Purpose::Recovery | Purpose::Wear | Purpose::Refresh => PageKind::User,
        Purpose::Translation | Purpose::TranslationGc | Purpose::Checkpoint => PageKind::Translation,
        Purpose::Validity | Purpose::ValidityQuery | Purpose::ValidityGc => PageKind::Validity,
    }
}
