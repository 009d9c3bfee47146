//! Requests of a host with a write buffer.

use super::Player;
use crate::device::Device;
use crate::error::SimError;
use crate::host::{Put, Why};
use crate::source::Request;
use crate::timing::Token;
use std::ops::Range;

impl<N: Device> Player<'_, '_, N> {
    /// Has what a request writes of a page enter the buffer; how often the request waits.
    pub(super) fn write_buffered(&mut self, token: Token, request: &Request, page: u32) -> Result<u32, SimError> {
        let part = self.host.part(request, page);
        if request.fua {
            return self.write_through(token, page, &part);
        }
        loop {
            let put = self.host.put(page, &part);
            let Some(room) = &mut self.room else { return Ok(0) };
            match put {
                Put::Hit => return Ok(room.hit(page, token)),
                Put::Entered => return Ok(room.enter(page, token)),
                Put::NoRoom => {}
            }
            for page in self.host.next_out() {
                self.write_out(page, Why::Evicted)?;
            }
        }
    }

    /// Has a part of a page go to the FTL at once, with what is held of the page.
    fn write_through(&mut self, token: Token, page: u32, part: &Range<u64>) -> Result<u32, SimError> {
        let held = self.host.holds(page);
        self.aim()?;
        self.host.write_through(page, part)?;
        match &mut self.room {
            Some(room) if held => {
                let leaving = room.leave(page);
                room.wait_for(leaving, token);
                self.submit_leaving(leaving);
                Ok(1)
            }
            _ => Ok(self.submit(token, false)),
        }
    }

    /// Has every page leave, for a flush; for how many programs that waits.
    pub(super) fn flush_buffer(&mut self, token: Token) -> Result<u32, SimError> {
        for page in self.host.held(0..u32::MAX) {
            self.write_out(page, Why::Flushed)?;
        }
        Ok(self.room.as_mut().map_or(0, |room| room.wait_for_all(token)))
    }

    /// A page leaves: what the FTL does for it has a token of its own.
    fn write_out(&mut self, page: u32, why: Why) -> Result<(), SimError> {
        self.aim()?;
        self.host.write_out(page, why)?;
        let Some(room) = &mut self.room else { return Ok(()) };
        let leaving = room.leave(page);
        self.submit_leaving(leaving);
        Ok(())
    }

    /// Moves what the FTL did for a page that leaves into the machine.
    fn submit_leaving(&mut self, token: Token) {
        if self.submit(token, false) == 0
            && let Some(room) = &mut self.room
        {
            room.left(token, &mut self.placed);
        }
    }

    /// Pages of a range are trimmed: what they took is free.
    pub(super) fn trim_buffered(&mut self, pages: Range<u32>) {
        let Some(room) = &mut self.room else { return };
        self.host.held(pages).into_iter().for_each(|page| room.trimmed(page, &mut self.placed));
    }

    /// Ends the waits of requests that a trim or a page without a program ended; how many requests
    /// ended with that.
    pub(super) fn end_placed(&mut self) -> u32 {
        if self.placed.is_empty() {
            return 0;
        }
        self.ended.clear();
        for token in self.placed.drain(..) {
            let request = &mut self.outstanding[token as usize];
            request.strands -= 1;
            if request.has_ended() {
                self.ended.push(token);
            }
        }
        self.end_all()
    }
}
