//! State saved to flash while a battery lasts, as a run of checkpoint pages, and found again by a
//! mount.
//!
//! 1. Page i of n carries the tag i and the auxiliary field n, with [`UNSETTLED`] if a page comes
//!    before the run whose program was cut short; its first eight bytes are a sequence
//!    number at which the save had begun, so that pages of two runs are never mixed. The rest is
//!    one stream of bytes. The last four bytes of page n - 1 are the check value of everything
//!    before them ([`Crc`]).
//! 2. The run counts if its last page is the youngest page of the device: whatever is programmed
//!    after it makes it stale. So a mount that loads it programs nothing, and can be cut short any
//!    number of times. A page that cannot be read makes no run stale: its spare area may be one
//!    that nobody wrote, and while the battery works a younger run follows a true one.
//! 3. A run with a wrong check value is as good as none.
//! 4. A page whose program failed may read well all the same. The page after it holds the same, so
//!    that of pages in a row with the same tag the youngest counts.

use super::order;
use super::survey::{FoundPage, Survey};
use crate::contract::FtlError;
use crate::crc::Crc;
use crate::flash::{Flash, Purpose};
use crate::saved::Sink;
use crate::space::age::UNSETTLED;
use crate::space::core::Core;
use alloc::vec::Vec;
use nand::{Nand, PageKind};

/// Bytes that name the run on each of its pages.
const HEADER: usize = 8;

/// Bytes of the check value, at the end of the last page.
const CHECK: usize = 4;

/// Pages that so many bytes take.
#[must_use]
pub const fn pages(bytes: u64, page_bytes: u32) -> u32 {
    let room = page_bytes as u64 - HEADER as u64;
    (bytes + CHECK as u64).div_ceil(room) as u32
}

/// Writes a run of checkpoint pages.
pub struct Writer<'a, N> {
    core: &'a mut Core<N>,
    page: &'a mut [u8],
    filled: usize,
    written: u32,
    total: u32,
    crc: Crc,
}

impl<'a, N: Nand> Writer<'a, N> {
    /// Begins a run of so many bytes; `page` has the size of a page. It is found with `since`, a
    /// sequence number of this save.
    pub fn new(core: &'a mut Core<N>, page: &'a mut [u8], bytes: u64, since: u64) -> Self {
        let total = pages(bytes, page.len() as u32);
        page.fill(0xFF);
        page[..HEADER].copy_from_slice(&since.to_le_bytes());
        Self { core, page, filled: HEADER, written: 0, total, crc: Crc::new() }
    }

    /// Flash and space, to look at.
    #[must_use]
    pub const fn core(&self) -> &Core<N> {
        self.core
    }

    /// Bytes taken so far.
    #[must_use]
    pub const fn taken(&self) -> u64 {
        self.written as u64 * (self.page.len() - HEADER) as u64 + (self.filled - HEADER) as u64
    }

    /// Where the stream of bytes ends in this page.
    fn end(&self) -> usize {
        self.page.len() - if self.written + 1 == self.total { CHECK } else { 0 }
    }

    fn program(&mut self) -> Result<(), FtlError> {
        debug_assert!(self.written < self.total, "more is saved than was announced");
        debug_assert!(self.filled <= self.end());
        let (body, check) = self.page.split_at_mut(self.end());
        self.crc.add(body);
        if !check.is_empty() {
            check.copy_from_slice(&self.crc.value().to_le_bytes());
        }
        let aux = self.total | if self.core.settling.is_some() { UNSETTLED } else { 0 };
        let ppn =
            self.core.program_metadata(Purpose::Checkpoint, PageKind::Checkpoint, self.written, aux, self.page)?;
        // Nothing is lost with it if power does not go after all.
        self.core.space.page_died(ppn);
        self.page[HEADER..].fill(0xFF);
        (self.filled, self.written) = (HEADER, self.written + 1);
        Ok(())
    }

    /// Programs what is left, so that the run is as long as was said.
    ///
    /// # Errors
    /// Those of the device.
    pub fn finish(mut self) -> Result<(), FtlError> {
        while self.written < self.total {
            self.program()?;
        }
        Ok(())
    }
}

impl<N: Nand> Sink for Writer<'_, N> {
    fn put(&mut self, mut bytes: &[u8]) -> Result<(), FtlError> {
        while !bytes.is_empty() {
            if self.filled == self.end() {
                self.program()?;
            }
            let count = bytes.len().min(self.end() - self.filled);
            debug_assert!(count > 0, "a page without room");
            self.page[self.filled..self.filled + count].copy_from_slice(&bytes[..count]);
            self.filled += count;
            bytes = &bytes[count..];
        }
        Ok(())
    }
}

/// What a battery saved.
#[derive(Debug)]
pub struct Saved {
    /// Counts of live pages, then what the validity store and the mapping put.
    pub bytes: Vec<u8>,
    /// Blocks whose first page carries this sequence number or a larger one were opened by the
    /// save.
    pub since: u64,
}

/// What was saved last; `None` if that is nothing, or anything was programmed since.
///
/// # Errors
/// Those of the device, except pages that cannot be read.
pub fn find<N: Nand>(flash: &mut Flash<N>, survey: &mut Survey) -> Result<Option<Saved>, FtlError> {
    // Pages of a validity store may share their blocks.
    let mut pages = survey.read_kind(flash, PageKind::Checkpoint, |_| true)?;
    pages.extend(survey.read_kind(flash, PageKind::Validity, |_| true)?);
    pages.retain(|(_, spare)| spare.kind == PageKind::Checkpoint);
    order::oldest_first(&mut pages);
    pages.dedup_by(|younger, older| {
        let again = younger.1.tag == older.1.tag;
        if again {
            *older = *younger;
        }
        again
    });
    let Some(&(_, last)) = pages.last() else { return Ok(None) };
    let total = last.aux & !UNSETTLED;
    let stale = survey.newest().is_some_and(|(_, newest)| newest.seq > last.seq);
    if stale || last.tag.checked_add(1) != Some(total) || total as usize > pages.len() {
        return Ok(None);
    }
    let total = total as usize;
    let run: &[FoundPage] = &pages[pages.len() - total..];
    debug_assert!(run.len() == total && run.last() == pages.last());
    let mut page = alloc::vec![0; flash.nand().geometry().page_bytes() as usize];
    let mut bytes = Vec::with_capacity(total * (page.len() - HEADER));
    let (mut name, mut crc) = ([0; HEADER], Crc::new());
    for (index, (ppn, spare)) in run.iter().enumerate() {
        let reads = flash.read_meta(Purpose::Recovery, *ppn, &mut page).is_ok();
        if index == 0 {
            name.copy_from_slice(&page[..HEADER]);
        }
        if !reads || spare.tag as usize != index || spare.aux != last.aux || page[..HEADER] != name {
            return Ok(None);
        }
        bytes.extend_from_slice(&page[HEADER..]);
        if index + 1 < total {
            crc.add(&page);
        } else if let Some((body, check)) = page.split_last_chunk::<CHECK>() {
            crc.add(body);
            if *check != crc.value().to_le_bytes() {
                return Ok(None);
            }
        }
    }
    debug_assert!(bytes.len() == total * (page.len() - HEADER));
    bytes.truncate(bytes.len() - CHECK);
    Ok(Some(Saved { bytes, since: u64::from_le_bytes(name) }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::recovery::device::{device, geometry};
    use crate::recovery::plausible::Contents;
    use nand::{Flags, Ppn, Spare};

    /// Whether a run of one page with number 10 counts beside a page of host data, which may be one
    /// of which the data cannot be read.
    fn counts(host_seq: u64, is_readable: bool) -> bool {
        let spare = |kind, seq, aux| {
            let flags = Flags::NONE;
            Spare { kind, tag: 0, seq, erase_count: 1, erased_at: 4, aux, flags }
        };
        let mut page = [0xA5; 512];
        let mut crc = Crc::new();
        let (body, check) = page.split_last_chunk_mut::<CHECK>().unwrap();
        crc.add(body);
        *check = crc.value().to_le_bytes();
        let run = (Ppn(0), spare(PageKind::Checkpoint, 10, 1), &page);
        let host = (Ppn(4), spare(PageKind::User, host_seq, 0), &[0xFF; 512]);
        let mut flash = device(&[run, host], if is_readable { &[] } else { &[Ppn(4)] });
        let contents = Contents::of_table(&geometry(), 16, 1, false);
        let mut survey = Survey::run(&mut flash, 1, &[], contents, |_| 0).unwrap();
        find(&mut flash, &mut survey).unwrap().is_some_and(|saved| saved.bytes == [0xA5; 512 - HEADER - CHECK])
    }

    #[test]
    fn every_page_of_a_run_says_how_long_it_is_and_whether_all_was_settled() {
        let spare = |tag, aux| {
            let flags = Flags::NONE;
            Spare {
                kind: PageKind::Checkpoint,
                tag,
                seq: 10 + u64::from(tag),
                erase_count: 1,
                erased_at: 4,
                aux,
                flags,
            }
        };
        let first = [0xA5; 512];
        let mut last = first;
        let mut crc = Crc::new();
        crc.add(&first);
        let (body, check) = last.split_last_chunk_mut::<CHECK>().unwrap();
        crc.add(body);
        *check = crc.value().to_le_bytes();
        for (aux, counts) in [(2, true), (2 | UNSETTLED, false), (1, false)] {
            let pages = [(Ppn(0), spare(0, aux), &first), (Ppn(1), spare(1, 2), &last)];
            let mut flash = device(&pages, &[]);
            let contents = Contents::of_table(&geometry(), 16, 1, false);
            let mut survey = Survey::run(&mut flash, 1, &[], contents, |_| 0).unwrap();
            assert_eq!(find(&mut flash, &mut survey).unwrap().is_some(), counts, "the first page says {aux:#x}");
        }
    }

    #[test]
    fn a_page_whose_program_failed_is_left_out_of_the_run_however_well_it_reads() {
        let (first, mut last) = ([0xA5; 512], [0xA5; 512]);
        let mut crc = Crc::new();
        crc.add(&first);
        let (body, check) = last.split_last_chunk_mut::<CHECK>().unwrap();
        crc.add(body);
        *check = crc.value().to_le_bytes();
        let counts = |tags: &[u32]| {
            let page = |(at, tag): (u32, &u32)| {
                let flags = Flags::NONE;
                let seq = 10 + u64::from(at);
                let spare =
                    Spare { kind: PageKind::Checkpoint, tag: *tag, seq, erase_count: 1, erased_at: 4, aux: 2, flags };
                (Ppn(at), spare, if *tag == 0 { &first } else { &last })
            };
            let pages: Vec<_> = (0..).zip(tags).map(page).collect();
            let mut flash = device(&pages, &[]);
            let contents = Contents::of_table(&geometry(), 16, 1, false);
            let mut survey = Survey::run(&mut flash, 1, &[], contents, |_| 0).unwrap();
            find(&mut flash, &mut survey).unwrap().is_some()
        };
        assert!(counts(&[0, 1]) && counts(&[0, 1, 1]) && counts(&[0, 0, 1]) && counts(&[0, 1, 0, 1]));
        assert!(!counts(&[0]) && !counts(&[1]) && !counts(&[0, 1, 0]));
    }

    #[test]
    fn a_younger_page_makes_a_run_stale_if_it_can_be_read() {
        assert!(counts(9, true) && counts(9, false), "an older page");
        assert!(!counts(11, true));
        assert!(counts(11, false), "nobody may have written its spare area");
    }
}
