//! The host: requests of bytes become pages of an FTL, and every read is checked.
//!
//! - A request covers pages from the one of its first byte to the one of its last.
//! - A page that a write covers in part is written whole; if it holds data, that is read first.
//! - A trim forgets only the pages that lie wholly inside it; the edges keep their contents.
//! - Pages are done in ascending order, those of a request before those of the next.
//!
//! For each logical page the host remembers which write of it was the last (modulo 2^16, 0 for
//! none) and writes that as the page's stamp. Each read must return it. The model runs up to 64
//! pages ahead of the FTL, which is told of them by [`Ftl::hint`] before they are done in order.

pub mod buffered;

use crate::error::SimError;
use crate::result::HostResult;
use crate::source::{Op, Request};
use buffered::Buffered;
pub(crate) use buffered::{Put, Why};
use ftl::ftls::Mount;
use ftl::placement::Future;
use ftl::victim::by_bank::Banked;
use ftl::{Config, Counts, Ftl, FtlError, MountReport};
use nand::{Lpn, Nand, Stamp};
use std::ops::Range;

/// Pages that are announced together.
const BATCH: usize = 64;

/// What is to be done with one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    /// Write, but read first if it holds data.
    WritePart,
}

/// The write after `version`; 0 is kept for pages without data.
#[inline]
const fn next_version(version: u16) -> u16 {
    version.wrapping_add(1 + (version == u16::MAX) as u16)
}

/// Bytes to pages, by shifting if it can be.
#[derive(Clone, Copy, Debug)]
struct PageSize {
    bytes: u64,
    shift: Option<u32>,
}

impl PageSize {
    fn new(bytes: u32) -> Self {
        Self { bytes: u64::from(bytes), shift: bytes.is_power_of_two().then(|| bytes.trailing_zeros()) }
    }

    /// The page of a byte and the byte's place in it.
    #[inline]
    fn split(&self, byte: u64) -> (u64, u64) {
        match self.shift {
            Some(shift) => (byte >> shift, byte & (self.bytes - 1)),
            None => (byte / self.bytes, byte % self.bytes),
        }
    }
}

/// The pages that a range of bytes touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first page.
    pub first: u32,
    /// One more than the last page.
    pub end: u32,
    /// The first page is not covered from its start.
    pub cut_head: bool,
    /// The last page is not covered to its end.
    pub cut_tail: bool,
}

impl Span {
    /// Whether the page is covered only in part.
    #[inline]
    #[must_use]
    pub const fn is_partial(&self, page: u32) -> bool {
        (self.cut_head && page == self.first) || (self.cut_tail && page + 1 == self.end)
    }

    /// First page wholly covered, and how many there are.
    #[must_use]
    pub const fn whole(&self) -> (u32, u32) {
        let first = self.first + self.cut_head as u32;
        let end = if self.cut_tail && self.end > 0 { self.end - 1 } else { self.end };
        (first, end.saturating_sub(first))
    }
}

/// A host that drives one FTL and checks it.
pub struct Host<N: Nand<Payload = Stamp>> {
    ftl: Box<dyn Ftl<N>>,
    name: String,
    page: PageSize,
    /// Last write of each logical page; 0 if it was never written, or trimmed.
    versions: Vec<u16>,
    buffer: Option<Box<Buffered>>,
    lpns: Vec<Lpn>,
    accesses: Vec<(Access, u16)>,
    tally: HostResult,
    during: &'static str,
    /// The FTL is to be told what will be written.
    foretold: bool,
}

impl<N: Nand<Payload = Stamp>> Host<N> {
    /// A host of an empty disk. `name` is the FTL's, for errors.
    #[must_use]
    pub fn new(name: &str, ftl: Box<dyn Ftl<N>>) -> Self {
        let page = PageSize::new(ftl.flash().nand().geometry().page_bytes());
        let versions = vec![0; ftl.logical_pages() as usize];
        Self {
            ftl,
            name: name.to_owned(),
            page,
            versions,
            buffer: None,
            lpns: Vec::with_capacity(BATCH),
            accesses: Vec::with_capacity(BATCH),
            tally: HostResult::default(),
            during: "the first requests",
            foretold: false,
        }
    }

    /// The FTL.
    #[must_use]
    pub fn ftl(&self) -> &dyn Ftl<N> {
        &*self.ftl
    }

    /// The FTL, for a harness.
    pub fn ftl_mut(&mut self) -> &mut dyn Ftl<N> {
        &mut *self.ftl
    }

    /// From now on the FTL is told what will be written: before each part of a run, all of it.
    pub fn foretell(&mut self) {
        self.foretold = true;
        self.ftl.foresee(Future::default());
    }

    /// Whether the FTL is to be told what will be written.
    #[must_use]
    pub const fn is_foretold(&self) -> bool {
        self.foretold
    }

    /// Tells the FTL which pages will be written, in order.
    pub fn tell(&mut self, writes: impl Iterator<Item = u32>) {
        let future = Future::of(self.versions.len() as u32, writes);
        self.ftl.foresee(future);
    }

    /// What the host has done since the last [`Host::begin`].
    #[must_use]
    pub const fn tally(&self) -> &HostResult {
        &self.tally
    }

    /// Flash operations since the FTL was made.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *self.ftl.flash().counts()
    }

    /// Bytes that the model of what was written takes.
    #[must_use]
    pub fn model_bytes(&self) -> u64 {
        (self.versions.capacity() * size_of::<u16>()) as u64
    }

    /// Starts counting anew, in the part of a run that `during` names in errors.
    pub fn begin(&mut self, during: &'static str) {
        self.tally = HostResult::default();
        self.during = during;
        self.buffer.iter_mut().for_each(|buffer| buffer.begin());
    }

    /// The pages of a request; `None` if it covers no byte.
    ///
    /// # Errors
    /// [`SimError::Workload`] if it leaves the disk.
    #[inline]
    pub fn span(&self, request: &Request) -> Result<Option<Span>, SimError> {
        let Some(last) = request.bytes.checked_sub(1) else { return Ok(None) };
        let (first, head) = self.page.split(request.offset);
        let (last, tail) = self.page.split(request.offset.saturating_add(last));
        if last >= self.versions.len() as u64 {
            return Err(self.outside(request));
        }
        Ok(Some(Span {
            first: first as u32,
            end: last as u32 + 1,
            cut_head: head != 0,
            cut_tail: tail + 1 != self.page.bytes,
        }))
    }

    /// The bytes of a page that a request is about.
    pub fn part(&self, request: &Request, page: u32) -> Range<u64> {
        let begin = u64::from(page) * self.page.bytes;
        let end = request.offset.saturating_add(request.bytes);
        request.offset.saturating_sub(begin)..(end - begin).min(self.page.bytes)
    }

    /// The page that a request writes, if it is that and nothing else: the common case.
    #[inline]
    fn whole_page_written(&self, request: &Request) -> Option<u32> {
        let shift = self.page.shift?;
        let page = request.offset >> shift;
        let whole = request.op == Op::Write && request.bytes == self.page.bytes && page << shift == request.offset;
        (whole && page < self.versions.len() as u64).then_some(page as u32)
    }

    #[cold]
    fn outside(&self, request: &Request) -> SimError {
        SimError::Workload {
            workload: self.during.to_owned(),
            reason: format!(
                "a {} of {} B at byte {} leaves the disk of {} B; map the trace onto the device or use a larger one",
                request.op.name(),
                request.bytes,
                request.offset,
                self.versions.len() as u64 * self.page.bytes
            ),
        }
    }

    /// Does requests in order until `writes_goal` pages have been written since [`Host::begin`];
    /// returns how many requests it did. A request is never cut, so the goal may be overshot by
    /// one.
    ///
    /// # Errors
    /// [`SimError::WrongData`], [`SimError::Ftl`], or [`SimError::Workload`] if a request leaves
    /// the disk.
    pub fn apply(&mut self, requests: &[Request], writes_goal: u64) -> Result<usize, SimError> {
        if self.has_buffer() {
            return self.apply_buffered(requests, writes_goal);
        }
        let mut done = 0;
        for request in requests {
            if self.tally.writes >= writes_goal {
                break;
            }
            done += 1;
            if let Some(page) = self.whole_page_written(request) {
                self.tally.writes += 1;
                self.plan(page, Access::Write);
                self.run_full_batch()?;
                continue;
            }
            let span = self.span(request)?;
            match (request.op, span) {
                (Op::Read, Some(span)) => {
                    for page in span.first..span.end {
                        self.plan(page, Access::Read);
                        self.run_full_batch()?;
                    }
                }
                (Op::Write, Some(span)) => {
                    self.tally.writes += u64::from(span.end - span.first);
                    for page in span.first..span.end {
                        self.plan(page, if span.is_partial(page) { Access::WritePart } else { Access::Write });
                        self.run_full_batch()?;
                    }
                }
                (Op::Trim, Some(span)) => {
                    self.run_batch()?;
                    self.trim(span)?;
                }
                (Op::Flush, _) => {
                    self.run_batch()?;
                    self.flush()?;
                }
                (_, None) => {}
            }
        }
        self.tally.requests += done as u64;
        self.run_batch()?;
        Ok(done)
    }

    /// Says that these requests come soon and will be done page by page, so that what their first
    /// pages need is brought near. Has no other effect.
    pub fn announce(&mut self, requests: &[Request]) {
        debug_assert!(self.lpns.is_empty(), "nothing is planned between requests");
        for request in requests.iter().take(BATCH) {
            let page = self.page.split(request.offset).0 as usize;
            if let Some(version) = self.versions.get(page) {
                std::hint::black_box(*version);
                self.lpns.push(Lpn(page as u32));
            }
        }
        self.ftl.hint(&self.lpns);
        self.lpns.clear();
    }

    /// Leaves undone what is left of a request that failed.
    pub(crate) fn give_up(&mut self) {
        self.lpns.clear();
        self.accesses.clear();
    }

    /// Counts a request that is then done page by page.
    pub fn count_request(&mut self) {
        self.tally.requests += 1;
    }

    /// Reads one page.
    ///
    /// # Errors
    /// As [`Host::apply`].
    #[inline]
    pub fn read_page(&mut self, page: u32) -> Result<(), SimError> {
        self.plan(page, Access::Read);
        self.run_planned()
    }

    /// Writes one page, reading it first if only a part of it is new.
    ///
    /// # Errors
    /// As [`Host::apply`].
    #[inline]
    pub fn write_page(&mut self, page: u32, partial: bool) -> Result<(), SimError> {
        self.tally.writes += 1;
        self.plan(page, if partial { Access::WritePart } else { Access::Write });
        self.run_planned()
    }

    /// Forgets the pages wholly inside a span.
    ///
    /// # Errors
    /// As [`Host::apply`].
    pub fn trim(&mut self, span: Span) -> Result<(), SimError> {
        let (first, count) = span.whole();
        if count == 0 {
            return Ok(());
        }
        self.drop_held(first..first + count);
        let from = first as usize;
        if let Some(versions) = self.versions.get_mut(from..from + count as usize) {
            versions.fill(0);
        }
        self.tally.trims += u64::from(count);
        match self.ftl.trim(Lpn(first), count) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.failed(&format!("trimming {count} page(s)"), Lpn(first), e)),
        }
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// [`SimError::Ftl`].
    pub fn flush(&mut self) -> Result<(), SimError> {
        self.tally.flushes += 1;
        self.write_all_out(Why::Flushed)?;
        match self.ftl.flush() {
            Ok(()) => Ok(()),
            Err(source) => Err(SimError::Ftl { ftl: self.name.clone(), doing: "flushing".to_owned(), source }),
        }
    }

    /// Lets the FTL save what its battery is there for.
    ///
    /// # Errors
    /// [`SimError::Ftl`].
    pub fn power_failing(&mut self) -> Result<(), SimError> {
        self.ftl.power_failing().map_err(|source| SimError::Ftl {
            ftl: self.name.clone(),
            doing: "saving by battery".to_owned(),
            source,
        })
    }

    /// Takes power away and mounts the FTL again from flash alone.
    ///
    /// # Errors
    /// [`SimError::Ftl`].
    pub fn power_cycle(self, mount: Mount<N>, config: &Config) -> Result<(Self, MountReport), SimError> {
        let (ftl, report) = mount(self.ftl.into_flash(), config).map_err(|source| SimError::Ftl {
            ftl: self.name.clone(),
            doing: "mounting after a power cut".to_owned(),
            source,
        })?;
        Ok((Self { ftl, ..self }, report))
    }

    /// Lets the FTL do one unit of background work; `false` if it has none.
    ///
    /// # Errors
    /// [`SimError::Ftl`].
    pub fn idle(&mut self) -> Result<bool, SimError> {
        self.ftl.idle().map_err(|source| SimError::Ftl {
            ftl: self.name.clone(),
            doing: "doing background work".to_owned(),
            source,
        })
    }

    /// Does something with the banks of the FTL, if it has any.
    pub(crate) fn by_bank<T: Default>(
        &mut self,
        act: impl FnOnce(&mut dyn Banked) -> Result<T, FtlError>,
    ) -> Result<T, SimError> {
        let Some(banked) = self.ftl.banked() else { return Ok(T::default()) };
        act(banked).map_err(|source| SimError::Ftl {
            ftl: self.name.clone(),
            doing: "working bank by bank".to_owned(),
            source,
        })
    }

    /// Reads `count` pages from `first` on, as far as there are any, and checks them. Does not
    /// count as the host's.
    ///
    /// # Errors
    /// As [`Host::apply`].
    pub fn verify(&mut self, first: u32, count: u32) -> Result<(), SimError> {
        let end = first.saturating_add(count).min(self.versions.len() as u32);
        self.write_all_out(Why::AtEnd)?;
        let reads = self.tally.reads;
        for page in first..end {
            self.plan(page, Access::Read);
            self.run_full_batch()?;
        }
        self.run_batch()?;
        self.tally.reads = reads;
        Ok(())
    }

    #[inline]
    fn plan(&mut self, page: u32, access: Access) {
        self.lpns.push(Lpn(page));
        self.accesses.push((access, 0));
    }

    #[inline]
    fn run_full_batch(&mut self) -> Result<(), SimError> {
        if self.lpns.len() >= BATCH { self.run_batch() } else { Ok(()) }
    }

    fn run_batch(&mut self) -> Result<(), SimError> {
        self.ftl.hint(&self.lpns);
        self.run_planned()
    }

    #[inline]
    fn run_planned(&mut self) -> Result<(), SimError> {
        // Apart from the FTL's work and with little else in the loop, so that cache misses overlap.
        for (lpn, (access, version)) in self.lpns.iter().zip(&mut self.accesses) {
            let last = &mut self.versions[lpn.index()];
            *version = *last;
            *last = if *access == Access::Read { *last } else { next_version(*last) };
        }
        for at in 0..self.lpns.len() {
            let (lpn, (access, version)) = (self.lpns[at], self.accesses[at]);
            match access {
                Access::Write => self.write_one(lpn, version)?,
                Access::Read => {
                    self.tally.reads += 1;
                    self.read_one(lpn, version)?;
                }
                Access::WritePart => {
                    if version != 0 {
                        self.tally.rmw_reads += 1;
                        self.read_one(lpn, version)?;
                    }
                    self.write_one(lpn, version)?;
                }
            }
        }
        self.lpns.clear();
        self.accesses.clear();
        Ok(())
    }

    #[inline]
    fn write_one(&mut self, lpn: Lpn, last_version: u16) -> Result<(), SimError> {
        self.program(lpn, next_version(last_version))
    }

    #[inline]
    fn program(&mut self, lpn: Lpn, version: u16) -> Result<(), SimError> {
        match self.ftl.write(lpn, &Stamp { lpn, version }) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.failed("writing", lpn, e)),
        }
    }

    #[inline]
    fn read_one(&mut self, lpn: Lpn, version: u16) -> Result<(), SimError> {
        let mut found = Stamp::UNWRITTEN;
        if let Err(e) = self.ftl.read(lpn, &mut found) {
            return Err(self.failed("reading", lpn, e));
        }
        let expected = if version == 0 { Stamp::UNWRITTEN } else { Stamp { lpn, version } };
        if found == expected { Ok(()) } else { Err(self.wrong(lpn, expected, found)) }
    }

    #[cold]
    fn failed(&self, doing: &str, lpn: Lpn, source: FtlError) -> SimError {
        SimError::Ftl {
            ftl: self.name.clone(),
            doing: format!("{doing} at logical page {} in {}", lpn.0, self.during),
            source,
        }
    }

    #[cold]
    fn wrong(&self, lpn: Lpn, expected: Stamp, found: Stamp) -> SimError {
        SimError::WrongData { ftl: self.name.clone(), lpn, expected, found, during: self.during }
    }
}
