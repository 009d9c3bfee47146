//! One FTL of a disk, and what the disk knows of its pages.

use super::bitmap::Bitmap;
use ftl::{Ftl, FtlError};
use nand::{Lpn, Nand};
use std::ops::Range;

/// One FTL with what is known of each of its pages.
///
/// A trim marks pages and is done with: `data` falls, `waiting` rises, and reads are zeros. The FTL
/// is told later, in [`Shard::settle`]. A write takes both marks back.
pub(super) struct Shard<N: Nand> {
    pub(super) ftl: Box<dyn Ftl<N>>,
    /// Pages that may hold something else than zeros.
    data: Bitmap,
    /// Pages that were trimmed and that the FTL still holds.
    waiting: Bitmap,
    /// Pages of `waiting`.
    waiting_pages: u32,
    /// No page before this one waits.
    waiting_from: u32,
    pages: u32,
    scratch: Vec<u8>,
}

impl<N: Nand<Payload = [u8]>> Shard<N> {
    /// `empty` says that no page was ever written.
    pub(super) fn new(ftl: Box<dyn Ftl<N>>, pages: u32, empty: bool) -> Self {
        debug_assert!(pages <= ftl.logical_pages());
        let scratch = vec![0; ftl.flash().nand().geometry().page_bytes() as usize];
        Self {
            ftl,
            data: Bitmap::new(pages, !empty),
            waiting: Bitmap::new(pages, false),
            waiting_pages: 0,
            waiting_from: pages,
            pages,
            scratch,
        }
    }

    /// Pages that wait to be forgotten.
    pub(super) fn waiting_pages(&self) -> u32 {
        self.waiting_pages
    }

    /// Operations so far that changed flash.
    pub(super) fn changes(&self) -> u64 {
        let total = self.ftl.flash().counts().total();
        total.programs + total.erases + total.flag_programs
    }

    /// Reads a page from byte `at` on.
    #[inline]
    pub(super) fn read(&mut self, page: u32, at: usize, out: &mut [u8]) -> Result<(), FtlError> {
        if !self.data.get(page) {
            out.fill(0);
            Ok(())
        } else if out.len() == self.scratch.len() {
            self.ftl.read(Lpn(page), out)
        } else {
            self.ftl.read(Lpn(page), &mut self.scratch)?;
            out.copy_from_slice(&self.scratch[at..at + out.len()]);
            Ok(())
        }
    }

    /// Writes a page, or a part of it from byte `at` on: then the rest is read before.
    #[inline]
    pub(super) fn write(&mut self, page: u32, at: usize, data: &[u8]) -> Result<(), FtlError> {
        if data.len() == self.scratch.len() {
            self.ftl.write(Lpn(page), data)?;
        } else {
            self.fetch(page)?;
            self.scratch[at..at + data.len()].copy_from_slice(data);
            self.ftl.write(Lpn(page), &self.scratch)?;
        }
        self.written(page);
        Ok(())
    }

    /// Makes `bytes` of a page zeros from byte `at` on, by a write.
    pub(super) fn write_zeroes(&mut self, page: u32, at: usize, bytes: usize) -> Result<(), FtlError> {
        if bytes == self.scratch.len() {
            self.scratch.fill(0);
        } else {
            self.fetch(page)?;
            self.scratch[at..at + bytes].fill(0);
        }
        self.ftl.write(Lpn(page), &self.scratch)?;
        self.written(page);
        Ok(())
    }

    fn fetch(&mut self, page: u32) -> Result<(), FtlError> {
        if self.data.get(page) {
            self.ftl.read(Lpn(page), &mut self.scratch)
        } else {
            self.scratch.fill(0);
            Ok(())
        }
    }

    /// Records a page that the FTL was told to write.
    #[inline]
    fn written(&mut self, page: u32) {
        self.data.set(page);
        if self.waiting_pages > 0 && self.waiting.clear(page) {
            self.waiting_pages -= 1;
        }
    }

    /// Whether a page may hold something else than zeros, and the end of its neighbours of which
    /// the same is known.
    pub(super) fn known(&self, from: u32, end: u32) -> (bool, u32) {
        (self.data.get(from), self.data.run_end(from, end))
    }

    /// Marks pages to be forgotten; answers whether there is anything to forget.
    pub(super) fn trim(&mut self, range: Range<u32>) -> bool {
        let start = range.start;
        let new = self.data.move_to(&mut self.waiting, range);
        self.waiting_pages += new;
        if new > 0 {
            self.waiting_from = self.waiting_from.min(start);
        }
        new > 0
    }

    /// Tells the FTL of pages that wait, up to `budget` of them; answers whether more wait.
    ///
    /// **Power loss**: any of the pages may be forgotten or not, until the FTL is flushed.
    pub(super) fn settle(&mut self, mut budget: u32) -> Result<bool, FtlError> {
        while self.waiting_pages > 0 && budget > 0 {
            let from = self.waiting.find(self.waiting_from, self.pages, true);
            debug_assert!(from < self.pages, "{} pages wait nowhere", self.waiting_pages);
            let end = self.waiting.run_end(from, self.pages).min(from.saturating_add(budget));
            self.ftl.trim(Lpn(from), end - from)?;
            let told = self.waiting.clear_range(from..end);
            debug_assert!(told == end - from);
            self.waiting_pages -= told;
            self.waiting_from = end;
            budget -= told;
        }
        if self.waiting_pages == 0 {
            self.waiting_from = self.pages;
        }
        Ok(self.waiting_pages > 0)
    }
}
