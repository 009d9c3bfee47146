//! The FTL as one serial stage: a processor that works on one page of a request after another.

use super::{CLOCK_END_NS, Player};
use crate::device::Device;
use crate::error::SimError;
use crate::source::{Op, Request};
use std::collections::VecDeque;

/// A request that the FTL works on, or comes to.
#[derive(Clone, Copy, Debug)]
struct Worked {
    ends_ns: u64,
    arrived_ns: u64,
    request: Request,
    /// Pages that it writes.
    pages: u32,
}

/// First come, first served.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// Nanoseconds for each page that is read, and for each that is written.
    page_ns: [u64; 2],
    /// When the last request that it has come to is through.
    free_ns: u64,
    waiting: VecDeque<Worked>,
    /// Pages that those write.
    pages: u64,
}

impl Stage {
    pub(super) fn new(page_ns: [u64; 2]) -> Self {
        Self { page_ns, ..Self::default() }
    }

    /// Has the FTL work on a request of so many pages that comes now; `false` if that takes no
    /// time.
    fn takes(&mut self, request: &Request, pages: u32, now_ns: u64, arrived_ns: u64) -> bool {
        let page_ns = match request.op {
            Op::Read => self.page_ns[0],
            Op::Write => self.page_ns[1],
            Op::Trim | Op::Flush => 0,
        };
        let takes_ns = page_ns.saturating_mul(u64::from(pages));
        if takes_ns == 0 && self.waiting.is_empty() {
            return false;
        }
        let ends_ns = self.free_ns.max(now_ns).saturating_add(takes_ns).min(CLOCK_END_NS);
        let pages = if request.op == Op::Write { pages } else { 0 };
        self.waiting.push_back(Worked { ends_ns, arrived_ns, request: *request, pages });
        (self.free_ns, self.pages) = (ends_ns, self.pages + u64::from(pages));
        true
    }

    /// When the FTL is through with the next request.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.waiting.front().map(|next| next.ends_ns)
    }

    /// Pages to be written that it has not come through with.
    pub(super) const fn pages(&self) -> u64 {
        self.pages
    }
}

impl<N: Device> Player<'_, '_, N> {
    /// Hands a request of so many pages to the FTL, which executes it once it is through with it.
    /// `false` if the request has ended.
    pub(super) fn begin(&mut self, request: &Request, pages: u32, arrived_ns: u64) -> Result<bool, SimError> {
        if self.stage.takes(request, pages, self.machine.now_ns(), arrived_ns) {
            self.in_device += 1;
            return Ok(true);
        }
        self.enter(request, arrived_ns)
    }

    /// Executes the request that the FTL is through with; how many requests ended with it.
    pub(super) fn leave_stage(&mut self) -> Result<u32, SimError> {
        let Some(Worked { request, arrived_ns, pages, .. }) = self.stage.waiting.pop_front() else { return Ok(0) };
        self.stage.pages -= u64::from(pages);
        self.in_device -= 1;
        let ended = u32::from(!self.enter(&request, arrived_ns)?);
        Ok(ended + std::mem::take(&mut self.freed))
    }
}
