//! A write buffer between the host and its FTL, in RAM.
//!
//! 1. What is written goes to the buffer, and gathers there by page in sectors of 512 B (a 64th of
//!    the page if that is more). A write that covers a sector in part does not make it whole.
//! 2. A page for which there is no room waits until pages have left, which the policy names. A page
//!    that leaves is written to the FTL as one page. If a part of it is not held and flash has data
//!    of it, it is read once, then.
//! 3. A read is answered by the buffer if that holds all of it. If it holds less, flash is read.
//! 4. A trim drops the pages that lie wholly inside it. The edges keep their contents.
//! 5. A flush has every page leave, in ascending order, and flushes the FTL after that. Nothing
//!    else makes what is held durable.
//! 6. A page of a write with FUA is written to the FTL at once, with what was held of it.
//! 7. After the last request every page leaves, and what that takes counts.
//!
//! Each page that is held carries which write of it was the last, and which one flash has, so that
//! every read is checked through the buffer too.

use super::{Host, next_version};
use crate::error::SimError;
use crate::result::WriteBufferResult;
use crate::source::{Op, Request};
use crate::spec::WriteBufferOptions;
use buffer::{Found, Sectors, WriteBuffer};
use nand::{Lpn, Nand, Stamp};
use std::ops::Range;

/// Which writes of a page there are.
#[derive(Clone, Copy, Debug)]
struct Versions {
    /// The last, which is held.
    newest: u16,
    /// The one that flash has; 0 for none.
    on_flash: u16,
}

/// Why pages leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Another one needs room.
    Evicted,
    /// A flush.
    Flushed,
    /// A write that has to be durable at once.
    Through,
    /// There are no more requests.
    AtEnd,
}

/// What came of handing a page to the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It was held.
    Hit,
    /// It has entered.
    Entered,
    /// Nothing was done: there is no room.
    NoRoom,
}

/// RAM of a page's place beside its contents: its number and two links of a list, of 4 B each. A
/// bit a sector is added.
const PLACE_BYTES: u64 = 12;

/// A buffer and what it did.
pub(super) struct Buffered {
    pages: WriteBuffer<Versions>,
    tally: WriteBufferResult,
    ram_bytes: u64,
}

impl Buffered {
    /// Starts counting anew.
    pub(super) fn begin(&mut self) {
        let WriteBufferResult { policy, pages, sector_bytes, .. } = std::mem::take(&mut self.tally);
        self.tally = WriteBufferResult { policy, pages, sector_bytes, ..WriteBufferResult::default() };
    }
}

impl<N: Nand<Payload = Stamp>> Host<N> {
    /// The same host with an empty write buffer.
    ///
    /// # Errors
    /// [`SimError::BadSpec`] if the buffer has no room, or more than the disk has pages.
    pub fn with_buffer(self, options: WriteBufferOptions) -> Result<Self, SimError> {
        let WriteBufferOptions { pages, policy } = options;
        let logical = self.versions.len();
        if pages == 0 || pages as usize > logical {
            let reason = format!("{pages} pages are not between 1 and the {logical} pages that the host sees");
            return Err(SimError::BadSpec { what: "write buffer", reason });
        }
        let geometry = self.ftl.flash().nand().geometry();
        let (page_bytes, block_pages) = (geometry.page_bytes(), geometry.pages_per_block());
        let sectors = Sectors::new(page_bytes);
        let place = u64::from(page_bytes) + PLACE_BYTES + u64::from(sectors.count().div_ceil(8));
        let tally = WriteBufferResult {
            policy: policy.name().to_owned(),
            pages,
            sector_bytes: sectors.bytes(),
            ..WriteBufferResult::default()
        };
        let pages = WriteBuffer::new(policy, pages, page_bytes, block_pages);
        let ram_bytes = place * u64::from(options.pages);
        Ok(Self { buffer: Some(Box::new(Buffered { pages, tally, ram_bytes })), ..self })
    }

    /// Whether writes go to a buffer.
    #[must_use]
    pub const fn has_buffer(&self) -> bool {
        self.buffer.is_some()
    }

    /// What the buffer did since the last [`Host::begin`]; none if there is no buffer.
    #[must_use]
    pub fn buffer_tally(&self) -> Option<&WriteBufferResult> {
        self.buffer.as_ref().map(|buffer| &buffer.tally)
    }

    /// Bytes of RAM that the buffer takes, with what it has to know of its pages; 0 without one.
    #[must_use]
    pub fn buffer_bytes(&self) -> u64 {
        self.buffer.as_ref().map_or(0, |buffer| buffer.ram_bytes)
    }

    /// As [`Host::apply`], through the buffer.
    pub(super) fn apply_buffered(&mut self, requests: &[Request], writes_goal: u64) -> Result<usize, SimError> {
        let mut done = 0;
        for request in requests {
            if self.tally.writes >= writes_goal {
                break;
            }
            done += 1;
            match (request.op, self.span(request)?) {
                (Op::Read, Some(span)) => {
                    for page in span.first..span.end {
                        self.read_through(page, &self.part(request, page))?;
                    }
                }
                (Op::Write, Some(span)) => {
                    for page in span.first..span.end {
                        let part = self.part(request, page);
                        if request.fua {
                            self.write_through(page, &part)?;
                        } else {
                            self.write_buffered(page, &part)?;
                        }
                    }
                }
                (Op::Trim, Some(span)) => self.trim(span)?,
                (Op::Flush, _) => self.flush()?,
                (_, None) => {}
            }
        }
        self.tally.requests += done as u64;
        Ok(done)
    }

    fn write_buffered(&mut self, page: u32, part: &Range<u64>) -> Result<(), SimError> {
        while self.put(page, part) == Put::NoRoom {
            for page in self.next_out() {
                self.write_out(page, Why::Evicted)?;
            }
        }
        Ok(())
    }

    /// Writes a part of a page to the FTL at once, with what is held of the page.
    ///
    /// # Errors
    /// As [`Host::apply`].
    pub(crate) fn write_through(&mut self, page: u32, part: &Range<u64>) -> Result<(), SimError> {
        if self.holds(page) {
            self.put(page, part);
            return self.write_out(page, Why::Through);
        }
        let (before, whole) = (self.tally.rmw_reads, part.end - part.start == self.page.bytes);
        self.write_page(page, !whole)?;
        let read = self.tally.rmw_reads - before;
        if let Some(buffer) = &mut self.buffer {
            buffer.tally.written_through += 1;
            buffer.tally.programmed += 1;
            buffer.tally.completing_reads += read;
        }
        Ok(())
    }

    /// Whether a page is held.
    pub(crate) fn holds(&self, page: u32) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.pages.kept(page).is_some())
    }

    /// Hands a part of a page to the buffer.
    pub(crate) fn put(&mut self, page: u32, part: &Range<u64>) -> Put {
        let Some(buffer) = &mut self.buffer else { return Put::NoRoom };
        let last = &mut self.versions[page as usize];
        let enter = || Versions { newest: *last, on_flash: *last };
        let Some(written) = buffer.pages.write(page, part, enter) else { return Put::NoRoom };
        written.kept.newest = next_version(written.kept.newest);
        *last = next_version(*last);
        self.tally.writes += 1;
        if written.hit {
            buffer.tally.write_hits += 1;
            buffer.tally.coalesced_bytes += part.end - part.start;
            Put::Hit
        } else {
            Put::Entered
        }
    }

    /// The pages that are to leave next; none if none is held.
    pub(crate) fn next_out(&self) -> Vec<u32> {
        self.buffer.as_ref().map(|buffer| buffer.pages.next()).unwrap_or_default()
    }

    /// The pages held of a range of pages.
    pub(crate) fn held(&self, pages: Range<u32>) -> Vec<u32> {
        self.buffer.as_ref().map(|buffer| buffer.pages.within(pages).collect()).unwrap_or_default()
    }

    /// A page leaves, and is written to the FTL.
    ///
    /// # Errors
    /// As [`Host::apply`].
    pub(crate) fn write_out(&mut self, page: u32, why: Why) -> Result<(), SimError> {
        let Some(buffer) = &mut self.buffer else { return Ok(()) };
        let Some(taken) = buffer.pages.take(page) else { return Ok(()) };
        let Versions { newest, on_flash } = taken.kept;
        let reads = !taken.complete && on_flash != 0;
        let tally = &mut buffer.tally;
        let counted = match why {
            Why::Evicted => &mut tally.evicted,
            Why::Flushed => &mut tally.flushed,
            Why::Through => &mut tally.written_through,
            Why::AtEnd => &mut tally.at_end,
        };
        *counted += 1;
        tally.programmed += 1;
        tally.completing_reads += u64::from(reads);
        let lpn = Lpn(page);
        self.check_newest(lpn, newest)?;
        if reads {
            self.tally.rmw_reads += 1;
            self.read_one(lpn, on_flash)?;
        }
        self.program(lpn, newest)
    }

    /// Everything that is held leaves.
    ///
    /// # Errors
    /// As [`Host::apply`].
    pub(crate) fn write_all_out(&mut self, why: Why) -> Result<(), SimError> {
        self.held(0..u32::MAX).into_iter().try_for_each(|page| self.write_out(page, why))
    }

    /// Pages wholly inside a trim are dropped.
    pub(super) fn drop_held(&mut self, pages: Range<u32>) {
        for page in self.held(pages) {
            if let Some(buffer) = &mut self.buffer
                && buffer.pages.take(page).is_some()
            {
                buffer.tally.trimmed += 1;
            }
        }
    }

    /// Reads a part of a page, from the buffer as far as that holds it.
    ///
    /// # Errors
    /// As [`Host::apply`].
    pub(crate) fn read_through(&mut self, page: u32, part: &Range<u64>) -> Result<(), SimError> {
        let Some(buffer) = &mut self.buffer else { return self.read_page(page) };
        let lpn = Lpn(page);
        let last = self.versions[lpn.index()];
        let found = buffer.pages.read(page, part);
        let versions = buffer.pages.kept(page).copied().unwrap_or(Versions { newest: last, on_flash: last });
        match found {
            Found::All => buffer.tally.read_hits += 1,
            Found::Part => buffer.tally.read_hits_in_part += 1,
            Found::Nothing => {}
        }
        self.tally.reads += 1;
        self.check_newest(lpn, versions.newest)?;
        if found == Found::All { Ok(()) } else { self.read_one(lpn, versions.on_flash) }
    }

    /// The write that is held must be the last one.
    fn check_newest(&self, lpn: Lpn, newest: u16) -> Result<(), SimError> {
        let last = self.versions[lpn.index()];
        let stamp = |version| Stamp { lpn, version };
        if newest == last { Ok(()) } else { Err(self.wrong(lpn, stamp(last), stamp(newest))) }
    }
}
