//! Blocks that may be collected, and the policies that choose among them.

use super::blocks::SpaceOptions;
use crate::victim::{self, Banks, Choice, Links, Victim};
use alloc::boxed::Box;
use nand::{BlockId, PageKind};

/// The policy over full blocks of host data and, apart from it or not, those of metadata.
pub(super) struct Candidates {
    links: Links,
    victims: Box<dyn Victim>,
    /// Over metadata, if that is held back from the other policy: the fewest live pages first.
    metadata: Option<Box<dyn Victim>>,
}

impl Candidates {
    pub(super) fn new(blocks: u32, pages_per_block: u32, banks: Banks, options: SpaceOptions) -> Self {
        let mut links = Links::new(blocks);
        let victims = (options.victim.make)(&mut links, pages_per_block, banks);
        let mut greedy = || victim::find("greedy").map(|entry| (entry.make)(&mut links, pages_per_block, Banks::ONE));
        let metadata = if options.metadata_apart { greedy() } else { None };
        Self { links, victims, metadata }
    }

    /// The policy that blocks of a kind stand with, and their places.
    #[inline]
    fn policy(&mut self, kind: PageKind) -> (&mut dyn Victim, &mut Links) {
        let policy = match &mut self.metadata {
            Some(victims) if kind != PageKind::User => &mut **victims,
            _ => &mut *self.victims,
        };
        (policy, &mut self.links)
    }

    /// As [`Victim::closed`].
    #[inline]
    pub(super) fn closed(&mut self, kind: PageKind, block: BlockId, valid: u32) {
        let (policy, links) = self.policy(kind);
        policy.closed(links, block, valid);
    }

    /// As [`Victim::page_died`].
    #[inline]
    pub(super) fn page_died(&mut self, kind: PageKind, block: BlockId, valid: u32) {
        let (policy, links) = self.policy(kind);
        policy.page_died(links, block, valid);
    }

    /// As [`Victim::removed`].
    #[inline]
    pub(super) fn removed(&mut self, kind: PageKind, block: BlockId) {
        let (policy, links) = self.policy(kind);
        policy.removed(links, block);
    }

    /// The block of a bank to collect next.
    pub(super) fn pick(&mut self, bank: u32) -> Option<Choice> {
        self.victims.pick(&mut self.links, bank)
    }

    /// Of the metadata blocks that are held back, the one with the fewest live pages.
    pub(super) fn pick_metadata(&mut self) -> Option<Choice> {
        self.metadata.as_mut()?.pick(&mut self.links, 0)
    }

    /// Bytes of RAM held.
    pub(super) fn ram_bytes(&self) -> u64 {
        self.links.ram_bytes()
            + self.victims.ram_bytes()
            + self.metadata.as_ref().map_or(0, |policy| policy.ram_bytes())
    }
}
