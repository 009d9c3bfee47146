//! Blocks that may be collected, and the policies that choose among them.

use super::blocks::SpaceOptions;
use crate::placement::Stream;
use crate::victim::{self, Banks, Choice, Links, Queues, Victim};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nand::{BlockId, PageKind};

/// The policy over full blocks of host data and, apart from it or not, those of metadata.
pub(super) struct Candidates {
    links: Links,
    victims: Box<dyn Victim>,
    /// Over metadata, if that is held back from the other policy: the fewest live pages first.
    metadata: Option<Box<dyn Victim>>,
    /// Blocks of streams that are queues, held back from both.
    held: Option<Held>,
}

/// Full blocks of streams that are queues, the one filled first at the front.
struct Held {
    queues: Queues,
    /// The streams that are queues now, a bit each.
    streams: u8,
    /// The queue that a block is of, full or not; [`NONE`] for a block of the victim policy.
    of: Vec<u8>,
}

/// No queue.
const NONE: u8 = u8::MAX;

/// Streams that may be queues: those that have a bit.
const QUEUES: u8 = 8;

impl Candidates {
    pub(super) fn new(blocks: u32, pages_per_block: u32, banks: Banks, options: SpaceOptions) -> Self {
        let mut links = Links::new(blocks);
        let victims = (options.victim.make)(&mut links, pages_per_block, banks);
        let fewest = if options.victim.picks_fewest { Some(options.victim) } else { victim::find("greedy") };
        let metadata = fewest.filter(|_| options.metadata_apart);
        let metadata = metadata.map(|entry| (entry.make)(&mut links, pages_per_block, Banks::ONE));
        let held = options.has_queues.then(|| Held {
            queues: Queues::new(&mut links, u32::from(QUEUES), banks),
            streams: 0,
            of: alloc::vec![NONE; blocks as usize],
        });
        Self { links, victims, metadata, held }
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

    /// A stream begins to fill a block.
    #[inline]
    pub(super) fn opened(&mut self, block: BlockId, stream: usize) {
        if let Some(held) = &mut self.held {
            let is_queue = stream < usize::from(QUEUES) && held.streams >> stream & 1 == 1;
            held.of[block.index()] = if is_queue { stream as u8 } else { NONE };
        }
    }

    /// The queue that a block is of.
    #[inline]
    fn queue_of(&self, block: BlockId) -> Option<u8> {
        let queue = self.held.as_ref()?.of[block.index()];
        (queue != NONE).then_some(queue)
    }

    /// Hands a full block of a queue to the victim policy.
    pub(super) fn give(&mut self, block: BlockId, valid: u32) {
        debug_assert!(self.queue_of(block).is_some(), "{block} is of no queue");
        if let Some(held) = &mut self.held {
            held.of[block.index()] = NONE;
            held.queues.remove(&mut self.links, block);
            self.victims.closed(&mut self.links, block, valid);
        }
    }

    /// Has these streams be queues, a bit each; full blocks of the others are the victim policy's.
    pub(super) fn set_queues(&mut self, streams: u8, valid: impl Fn(BlockId) -> u32) {
        let Some(held) = &mut self.held else { return };
        let no_more = held.streams & !streams;
        held.streams = streams;
        if no_more == 0 {
            return;
        }
        for block in (0..held.of.len() as u32).map(BlockId) {
            let Some(held) = &mut self.held else { return };
            let queue = held.of[block.index()];
            if queue == NONE || no_more >> queue & 1 == 0 {
                continue;
            }
            if held.queues.holds(&self.links, block) {
                self.give(block, valid(block));
            } else {
                held.of[block.index()] = NONE;
            }
        }
    }

    /// The block of a bank that a queue has held longest.
    pub(super) fn oldest(&self, stream: Stream, bank: u32) -> Option<BlockId> {
        self.held.as_ref()?.queues.front(&self.links, u32::from(stream.0), bank)
    }

    /// As [`Victim::closed`]. A block of a queue in which nothing lives waits for nothing.
    #[inline]
    pub(super) fn closed(&mut self, kind: PageKind, block: BlockId, valid: u32) {
        if let Some(queue) = self.queue_of(block)
            && let Some(held) = &mut self.held
        {
            if valid > 0 {
                return held.queues.push(&mut self.links, u32::from(queue), block);
            }
            held.of[block.index()] = NONE;
        }
        let (policy, links) = self.policy(kind);
        policy.closed(links, block, valid);
    }

    /// As [`Victim::page_died`].
    #[inline]
    pub(super) fn page_died(&mut self, kind: PageKind, block: BlockId, valid: u32) {
        if self.queue_of(block).is_some() {
            if valid == 0 {
                self.give(block, valid);
            }
            return;
        }
        let (policy, links) = self.policy(kind);
        policy.page_died(links, block, valid);
    }

    /// As [`Victim::removed`].
    #[inline]
    pub(super) fn removed(&mut self, kind: PageKind, block: BlockId) {
        if self.queue_of(block).is_some()
            && let Some(held) = &mut self.held
        {
            return held.queues.remove(&mut self.links, block);
        }
        let (policy, links) = self.policy(kind);
        policy.removed(links, block);
    }

    /// The block of a bank to collect next. `full` answers what a full block holds, and how many
    /// pages in it live.
    pub(super) fn pick(&mut self, bank: u32, full: impl Fn(BlockId) -> Option<(PageKind, u32)>) -> Option<Choice> {
        let Self { links, victims, metadata, held } = self;
        let is_held = |block: BlockId| held.as_ref().is_some_and(|held| held.of[block.index()] != NONE);
        victims.pick(links, bank, &|block| {
            let (kind, valid) = full(block)?;
            let is_other = metadata.is_some() && kind != PageKind::User || is_held(block);
            (!is_other).then_some(valid)
        })
    }

    /// Of the metadata blocks that are held back, the one with the fewest live pages.
    pub(super) fn pick_metadata(&mut self, full: impl Fn(BlockId) -> Option<(PageKind, u32)>) -> Option<Choice> {
        let live = |block| full(block).filter(|(kind, _)| *kind != PageKind::User).map(|(_, valid)| valid);
        self.metadata.as_mut()?.pick(&mut self.links, 0, &live)
    }

    /// Bytes of RAM held.
    pub(super) fn ram_bytes(&self) -> u64 {
        self.links.ram_bytes()
            + self.victims.ram_bytes()
            + self.metadata.as_ref().map_or(0, |policy| policy.ram_bytes())
            + self.held.as_ref().map_or(0, |held| held.of.capacity() as u64)
    }
}
