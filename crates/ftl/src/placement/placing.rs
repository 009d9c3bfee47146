//! The placement policy of an FTL, behind levelling of wear if that is wanted.

use super::wear::Wear;
use super::{Cause, Future, PageWrite, Past, Placement, Stream};
use crate::config::WearOptions;
use alloc::boxed::Box;
use nand::{BlockId, Lpn};

/// Decides over every write of a page of host data.
pub(crate) struct Placing {
    policy: Box<dyn Placement>,
    /// [`Placement::by_cause`].
    by_cause: Option<[Stream; 2]>,
    /// Whether the policy hears of blocks.
    follows: bool,
    /// Whether the policy wants to know a page's past.
    asks: bool,
    /// Whether streams of the policy are queues.
    names: bool,
    /// Whether the policy waits to be told the future.
    blind: bool,
    wear: Option<Wear>,
}

impl Placing {
    /// A policy alone.
    pub(crate) fn new(policy: Box<dyn Placement>) -> Self {
        Self {
            by_cause: policy.by_cause(),
            follows: policy.follows_blocks(),
            asks: policy.asks_for_past(),
            names: policy.names_victims(),
            blind: policy.is_blind(),
            policy,
            wear: None,
        }
    }

    /// Exchanges the policy; answers what was there.
    pub(crate) fn exchange(&mut self, policy: Box<dyn Placement>) -> Box<dyn Placement> {
        (self.follows, self.asks) = (policy.follows_blocks(), policy.asks_for_past());
        (self.blind, self.by_cause, self.names) = (policy.is_blind(), policy.by_cause(), policy.names_victims());
        core::mem::replace(&mut self.policy, policy)
    }

    /// Begins to level wear, or stops. One stream more takes data at rest, to worn blocks.
    pub(crate) fn level(&mut self, options: Option<WearOptions>) {
        self.wear = options.map(Wear::new);
    }

    /// The state of levelling.
    #[inline]
    pub(crate) const fn wear(&mut self) -> Option<&mut Wear> {
        self.wear.as_mut()
    }

    /// Where a page goes that the host writes.
    #[inline]
    pub(crate) fn place_written(&mut self, lpn: Lpn, past: Option<Past>) -> Stream {
        match self.by_cause {
            Some([stream, _]) => stream,
            None => self.place(&PageWrite { past, ..PageWrite::by_host(lpn) }),
        }
    }

    /// Where every page goes that is moved, if nothing is known of it that matters.
    #[inline]
    pub(crate) const fn of_moved(&self) -> Option<Stream> {
        match (self.by_cause, &self.wear) {
            (Some([_, stream]), None) => Some(stream),
            _ => None,
        }
    }

    /// Where a page goes: data at rest to worn blocks, if wear is levelled; else where the policy
    /// says.
    #[inline]
    pub(crate) fn place(&mut self, write: &PageWrite) -> Stream {
        debug_assert!((write.cause == Cause::Host) == write.age.is_none(), "{write:?}");
        debug_assert!((write.cause == Cause::Host) == write.from.is_none(), "{write:?}");
        if let (Some(wear), Some(age)) = (&mut self.wear, write.age)
            && (write.cause == Cause::Wear || wear.has_settled(age))
        {
            return Stream(self.policy.streams());
        }
        if let Some(streams) = self.by_cause {
            let stream = streams[usize::from(write.cause != Cause::Host)];
            debug_assert!(stream == self.policy.place(write) && !self.policy.idle(1));
            return stream;
        }
        let stream = self.policy.place(write);
        debug_assert!(stream.0 < self.policy.streams(), "{stream:?} is none of the policy's");
        if write.cause == Cause::Host {
            self.policy.idle(1);
        }
        stream
    }

    /// Whether the policy wants to know what the mapping keeps of a page's past.
    #[inline]
    pub(crate) const fn asks_for_past(&self) -> bool {
        self.asks
    }

    /// The streams that are queues, and the one of which a block is to go; `None` if no stream of
    /// the policy ever is.
    pub(crate) fn queues(&self) -> Option<(u8, Option<Stream>)> {
        self.names.then(|| (self.policy.queues(), self.policy.overfull()))
    }

    /// Does background work of the policy; whether there was any.
    pub(crate) fn idle(&mut self, budget: u32) -> bool {
        self.policy.idle(budget)
    }

    /// Tells the policy what the host will write.
    pub(crate) fn foresee(&mut self, future: Future) {
        self.policy.foresee(future);
        self.blind = self.policy.is_blind();
    }

    /// Whether the policy waits to be told.
    #[inline]
    pub(crate) const fn is_blind(&self) -> bool {
        self.blind
    }

    /// A page of a stream was programmed to a block.
    #[inline]
    pub(crate) fn placed(&mut self, stream: Stream, block: impl FnOnce() -> BlockId) {
        if self.follows && stream.0 < self.policy.streams() {
            self.policy.placed(stream, block());
        }
    }

    /// A collector has moved all that lived in a block.
    #[inline]
    pub(crate) fn emptied(&mut self, block: BlockId) {
        if self.follows {
            self.policy.emptied(block);
        }
    }

    /// Bytes of RAM that the policy holds.
    pub(crate) fn policy_bytes(&self) -> u64 {
        self.policy.ram_bytes()
    }

    /// Bytes of RAM that levelling holds; `None` if wear is not levelled.
    pub(crate) fn wear_bytes(&self) -> Option<u64> {
        self.wear.as_ref().map(Wear::ram_bytes)
    }
}
