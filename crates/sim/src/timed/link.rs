//! The link between host and device: what is written crosses it before the device has it, what is
//! read before the host does.

use super::{CLOCK_END_NS, Player};
use crate::device::Device;
use crate::error::SimError;
use crate::result::HostResult;
use crate::source::{Op, Request};
use crate::timing::Token;
use nand::profiles::Limits;
use std::collections::VecDeque;

/// A request on its way to the device.
#[derive(Clone, Copy, Debug)]
struct Coming {
    enters_ns: u64,
    arrived_ns: u64,
    request: Request,
    /// Pages that it writes.
    pages: u32,
}

/// Each direction carries one request after another, in order.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Bytes per microsecond of what is written and of what is read; 0 takes no time.
    rates: [u64; 2],
    /// When the last transfer ends.
    free_ns: [u64; 2],
    incoming: VecDeque<Coming>,
    /// Pages that those write.
    pages: u64,
    /// Reads that end, and when.
    outgoing: VecDeque<(u64, Token)>,
}

impl Link {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { rates: [limits.host_write_bytes_per_us, limits.host_read_bytes_per_us], ..Self::default() }
    }

    /// When so many bytes have crossed that are ready now.
    fn cross(&mut self, direction: usize, bytes: u64, now_ns: u64) -> u64 {
        let takes_ns = bytes.saturating_mul(1000).div_ceil(self.rates[direction]);
        let end_ns = self.free_ns[direction].max(now_ns).saturating_add(takes_ns).min(CLOCK_END_NS);
        self.free_ns[direction] = end_ns;
        end_ns
    }

    /// Puts a request of so many pages that has arrived onto the link; `false` if it is in the
    /// device at once.
    pub(super) fn brings(&mut self, request: &Request, pages: u32, now_ns: u64, arrived_ns: u64) -> bool {
        if request.op == Op::Read || self.rates[0] == 0 {
            return false;
        }
        let (bytes, pages) = if request.op == Op::Write { (request.bytes, pages) } else { (0, 0) };
        let enters_ns = self.cross(0, bytes, now_ns);
        let waits = enters_ns > now_ns || !self.incoming.is_empty();
        if waits {
            self.incoming.push_back(Coming { enters_ns, arrived_ns, request: *request, pages });
            self.pages += u64::from(pages);
        }
        waits
    }

    /// Puts what a request read onto the link; `false` if the host has it at once.
    pub(super) fn takes(&mut self, token: Token, op: Op, bytes: u64, now_ns: u64) -> bool {
        if op != Op::Read || bytes == 0 || self.rates[1] == 0 {
            return false;
        }
        let at_ns = self.cross(1, bytes, now_ns);
        self.outgoing.push_back((at_ns, token));
        true
    }

    /// When the next request has crossed.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let enters_ns = self.incoming.front().map(|next| next.enters_ns);
        enters_ns.into_iter().chain(self.outgoing.front().map(|next| next.0)).min()
    }
}

impl<N: Device> Player<'_, '_, N> {
    /// What the host has done, and what it has sent to be written.
    pub(super) fn fed(&self) -> HostResult {
        let done = *self.host.tally();
        HostResult { writes: done.writes + self.link.pages + self.stage.pages(), ..done }
    }

    /// When the next thing happens, if anything is going on.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.machine.next_ns().into_iter().chain(self.link.next_ns()).chain(self.stage.next_ns()).min()
    }

    /// Lets the next request cross the link or leave the FTL, if that comes before anything that
    /// flash does; how many requests ended with it.
    pub(super) fn cross(&mut self) -> Result<Option<u32>, SimError> {
        let next_ns = self.link.next_ns().into_iter().chain(self.stage.next_ns()).min();
        let Some(at_ns) = next_ns.filter(|at_ns| self.machine.next_ns().is_none_or(|ns| *at_ns < ns)) else {
            return Ok(None);
        };
        self.machine.wait_until(at_ns);
        if self.stage.next_ns() == Some(at_ns) {
            return self.leave_stage().map(Some);
        }
        if let Some((_, token)) = self.link.outgoing.pop_front_if(|next| next.0 == at_ns) {
            self.ended.clear();
            self.end(token);
            return Ok(Some(1 + self.end_all()));
        }
        let Some(Coming { request, arrived_ns, pages, .. }) = self.link.incoming.pop_front() else {
            return Ok(Some(0));
        };
        self.link.pages -= u64::from(pages);
        self.in_device -= 1;
        let ended = u32::from(!self.begin(&request, pages, arrived_ns)?);
        Ok(Some(ended + std::mem::take(&mut self.freed)))
    }
}
