//! What a read may return: for each logical page one version while power stays on, perhaps several
//! after a cut.
//!
//! 1. A write that completed is what a read returns. A write under way when power was cut is there
//!    or not.
//! 2. Under [`Durability::OnFlush`] a cut may undo every write completed since the last flush, page
//!    by page.
//! 3. A trimmed page reads as never written. Until a flush has completed that was issued after the
//!    trim had completed, a cut may undo the trim: the page then reads as some version that it had,
//!    or as an error, as the block with that version may have been half erased: a collector does
//!    not save what was trimmed, and what reads once may be an error later. The next cut may do the
//!    trim again. From that flush on the trim stays, whatever is cut. An error does not say that
//!    the trim was done: a page that was read as a version since the cut is that version or an
//!    error.
//! 4. What was read once is what is read until power is cut again, or the page written.
//! 5. A page that the device itself took reads as last written or as an error, until it is written
//!    again: never as an older version, zeros, or another page's data. There are two exceptions
//!    when the device is mounted ([`Model::harm_unseen`]), where an older version may be what is
//!    left. Of a page without a readable spare area nobody knows whose it was. The page programmed
//!    last, if it cannot be read, looks like one whose program was cut short. If it took metadata,
//!    trims may be undone as by a cut, flushed or not. Unless metadata is made again from host
//!    data, any page may be an error then, and a mount or a write may fail.
//! 6. Without the battery that an FTL assumes, every page may read after a cut as an error or as an
//!    older version of itself. Each that does and was acknowledged is counted. What was read once
//!    may become an error if an older copy of it was in a block whose erase was cut short: flash
//!    may name that copy, which the battery would have said to be dead, and half an erase may let
//!    it read well for a while. Nothing that a mount can read tells so.
//! 7. Never is the data of another page returned, nor data never written.

use crate::report::Tally;
use ftl::FtlError;
use ftl::ftls::Durability;
use nand::{Lpn, Stamp};

/// Trimmed since it was last written, and a cut may undo it.
const TRIMMED: u8 = 1;
/// Taken by the device.
const HARMED: u8 = 2;
/// Read or written since power came on.
const PINNED: u8 = 4;
/// Counted as lost since power came on.
const COUNTED: u8 = 8;
/// An older version may be what is left after a cut.
const ROLLED: u8 = 16;
/// Trimmed since it was last written, and a flush completed since.
const FINAL: u8 = 32;
/// A copy was in a block that is half erased, and flash may name that copy.
const FADING: u8 = 64;

/// What every logical page may read as. Version 0 is a page never written.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    durable: Durability,
    current: Vec<u16>,
    flags: Vec<u8>,
    /// Other versions that a page may read as after a cut.
    others: Vec<(u32, u16)>,
    /// The page of each version ever written.
    owners: Vec<u32>,
    /// A page that the device took may read as an older version, always.
    lenient: bool,
    /// There is no battery although the FTL assumes one.
    forgetful: bool,
    /// What was allowed and seen.
    tally: Tally,
    /// The device took metadata that nothing replaces: operations may fail.
    metadata_lost: bool,
}

impl Model {
    pub(crate) fn new(durable: Durability, logical_pages: u32) -> Self {
        let pages = logical_pages as usize;
        Self {
            durable,
            current: vec![0; pages],
            flags: vec![PINNED; pages],
            others: Vec::new(),
            owners: vec![u32::MAX],
            lenient: false,
            forgetful: false,
            tally: Tally::default(),
            metadata_lost: false,
        }
    }

    /// A page that the device took may read as an older version of itself.
    pub(crate) fn lenient(self) -> Self {
        Self { lenient: true, ..self }
    }

    /// From here on a cut takes what is only in RAM.
    pub(crate) fn without_battery(self) -> Self {
        Self { forgetful: true, ..self }
    }

    /// What was allowed and seen since the last call.
    pub(crate) fn take_tally(&mut self) -> Tally {
        core::mem::take(&mut self.tally)
    }

    pub(crate) fn logical_pages(&self) -> u32 {
        self.current.len() as u32
    }

    /// Whether this is what its page should read as.
    pub(crate) fn is_current(&self, stamp: Stamp) -> bool {
        self.current.get(stamp.lpn.index()) == Some(&stamp.version)
    }

    /// Whether version numbers are about to repeat.
    pub(crate) fn is_nearly_used_up(&self) -> bool {
        self.owners.len() + 8 * self.current.len() + 4096 > usize::from(u16::MAX)
    }

    /// What a write begins to write: a version never used before.
    pub(crate) fn begin_write(&mut self, lpn: u32) -> Stamp {
        let version = self.owners.len() as u16;
        self.owners.push(lpn);
        self.others.push((lpn, version));
        Stamp { lpn: Lpn(lpn), version }
    }

    pub(crate) fn complete_write(&mut self, lpn: u32) {
        let Some(at) = self.others.iter().rposition(|other| other.0 == lpn) else { return };
        let (_, version) = self.others.remove(at);
        let old = core::mem::replace(&mut self.current[lpn as usize], version);
        let flags = &mut self.flags[lpn as usize];
        if self.durable == Durability::OnFlush {
            self.others.push((lpn, old));
            *flags = *flags & !(HARMED | ROLLED) | PINNED;
        } else {
            self.others.retain(|other| other.0 != lpn);
            *flags = PINNED;
        }
    }

    pub(crate) fn begin_trim(&mut self, lpn: u32, count: u32) {
        for lpn in (lpn..lpn + count).filter(|lpn| !self.is_gone(*lpn)).collect::<Vec<_>>() {
            self.flags[lpn as usize] |= TRIMMED;
        }
    }

    pub(crate) fn complete_trim(&mut self, lpn: u32, count: u32) {
        for lpn in lpn..lpn + count {
            let flag = if self.is_gone(lpn) { FINAL } else { TRIMMED };
            (self.current[lpn as usize], self.flags[lpn as usize]) = (0, flag | PINNED);
        }
    }

    /// An earlier trim of the page is final, and nothing was written since: another trim changes
    /// nothing.
    fn is_gone(&self, lpn: u32) -> bool {
        let (version, flags) = (self.current[lpn as usize], self.flags[lpn as usize]);
        version == 0 && flags & (FINAL | HARMED) == FINAL && !self.others.iter().any(|other| other.0 == lpn)
    }

    pub(crate) fn complete_flush(&mut self) {
        // Of a page neither read nor written since the cut, nobody knows yet what the flush kept.
        self.others.retain(|other| self.flags[other.0 as usize] & PINNED == 0);
        for (flags, version) in self.flags.iter_mut().zip(&self.current) {
            if *flags & PINNED == 0 {
                continue;
            }
            if *version != 0 {
                *flags &= !(TRIMMED | FINAL);
            } else if *flags & TRIMMED != 0 {
                *flags = *flags & !TRIMMED | FINAL;
            }
        }
    }

    /// Power was cut: what was not read since may be another version.
    pub(crate) fn cut(&mut self) {
        self.flags.iter_mut().for_each(|flags| *flags &= !(PINNED | COUNTED));
        if self.forgetful {
            self.flags.iter_mut().for_each(|flags| *flags |= HARMED | ROLLED);
        }
    }

    /// The battery died before everything was saved: trims may be undone.
    pub(crate) fn battery_died(&mut self) {
        for (flags, version) in self.flags.iter_mut().zip(&self.current) {
            if *version == 0 {
                *flags = *flags & !FINAL | TRIMMED;
            }
        }
    }

    /// A copy of the page can be read for a while, as in a block whose erase was cut short. Without
    /// a battery what was read once is not spared by that.
    pub(crate) fn fade(&mut self, lpn: u32) {
        if let Some(flags) = self.flags.get_mut(lpn as usize).filter(|_| self.forgetful) {
            *flags |= FADING;
        }
    }

    /// The device took a copy of the page.
    pub(crate) fn harm(&mut self, lpn: u32) {
        let rolled = if self.lenient { ROLLED } else { 0 };
        if let Some(flags) = self.flags.get_mut(lpn as usize) {
            *flags |= HARMED | rolled;
        }
    }

    /// The device took a copy of the page, and what said whose it was.
    pub(crate) fn harm_unseen(&mut self, lpn: u32) {
        if let Some(flags) = self.flags.get_mut(lpn as usize) {
            *flags |= HARMED | ROLLED;
        }
    }

    /// The device took metadata: a trim may be undone.
    pub(crate) fn harm_trims(&mut self) {
        let trimmed = self.flags.iter_mut().filter(|flags| **flags & (TRIMMED | FINAL) != 0);
        trimmed.for_each(|flags| *flags = *flags & !(PINNED | FINAL) | TRIMMED);
    }

    /// The device took metadata that nothing replaces: any page may be an error, a mount and a
    /// write may fail.
    pub(crate) fn lose_metadata(&mut self) {
        self.metadata_lost = true;
        self.harm_trims();
        let rolled = if self.lenient { ROLLED } else { 0 };
        self.flags.iter_mut().for_each(|flags| *flags |= HARMED | rolled);
    }

    /// Whether the device took metadata that nothing replaces.
    pub(crate) const fn is_metadata_lost(&self) -> bool {
        self.metadata_lost
    }

    /// Whether an operation that failed so may fail: the device took metadata, and the error says
    /// so.
    pub(crate) fn may_fail(&self, error: &FtlError) -> bool {
        self.metadata_lost && is_loss(error)
    }

    /// A write of a page, or a trim, failed as it may: the page reads as before or as written.
    pub(crate) fn fail(&mut self, lpn: u32, count: u32) {
        self.flags[lpn as usize..(lpn + count) as usize].iter_mut().for_each(|flags| *flags &= !PINNED);
    }

    /// Judges what a read returned, and holds the FTL to it from now on.
    pub(crate) fn read(&mut self, lpn: u32, got: Result<Stamp, FtlError>) -> Result<Seen, String> {
        let flags = self.flags[lpn as usize];
        let stamp = match got {
            Ok(stamp) => stamp,
            Err(error)
                if is_loss(&error)
                    && (self.metadata_lost
                        || flags & (HARMED | FADING) != 0
                        || flags & (TRIMMED | PINNED) == TRIMMED) =>
            {
                self.count_lost(lpn);
                if flags & TRIMMED != 0 {
                    self.tally.trims_undone += 1;
                } else {
                    self.tally.errors += 1;
                }
                return Ok(Seen::Error);
            }
            Err(error) => return Err(format!("reading logical page {lpn}: {error}")),
        };
        let version = if stamp == Stamp::UNWRITTEN { 0 } else { stamp.version };
        if version != 0 && (stamp.lpn.0 != lpn || self.owners.get(version as usize) != Some(&lpn)) {
            return Err(format!("logical page {lpn} reads as {stamp:?}, which was never written there"));
        }
        let current = self.current[lpn as usize];
        if version != current && !self.may_be(lpn, version) {
            return Err(format!("logical page {lpn} reads as {}, should be {}", name(version), self.allowed(lpn)));
        }
        if version != current && !self.others.contains(&(lpn, version)) {
            self.count_lost(lpn);
            if flags & TRIMMED != 0 {
                self.tally.trims_undone += 1;
            } else if !self.forgetful {
                self.tally.older += 1;
            }
        }
        self.current[lpn as usize] = version;
        let flags = self.flags[lpn as usize];
        // What a missing battery spared is as good as any.
        let spared = if self.forgetful { HARMED | ROLLED } else { 0 };
        let kept = if version == 0 { flags & !spared } else { flags & !(FINAL | spared) };
        // The block of what a trim had superseded may have been half erased: it may read once more,
        // and then no more.
        let undone = if version != 0 && flags & TRIMMED != 0 && flags & PINNED == 0 { HARMED } else { 0 };
        self.flags[lpn as usize] = kept | undone | PINNED;
        if flags & PINNED == 0 {
            self.others.retain(|other| other.0 != lpn);
        }
        Ok(if version == current { Seen::Expected } else { Seen::Other })
    }

    fn count_lost(&mut self, lpn: u32) {
        let flags = &mut self.flags[lpn as usize];
        if self.forgetful && *flags & (TRIMMED | PINNED | COUNTED) == 0 && self.current[lpn as usize] != 0 {
            *flags |= COUNTED;
            self.tally.lost += 1;
        }
    }

    fn may_be(&self, lpn: u32, version: u16) -> bool {
        let flags = self.flags[lpn as usize];
        flags & PINNED == 0 && (flags & (TRIMMED | ROLLED) != 0 || self.others.contains(&(lpn, version)))
    }

    fn allowed(&self, lpn: u32) -> String {
        let mut text = name(self.current[lpn as usize]);
        let flags = self.flags[lpn as usize];
        if flags & PINNED == 0 {
            for other in self.others.iter().filter(|other| other.0 == lpn) {
                text += " or ";
                text += &name(other.1);
            }
            if flags & (TRIMMED | ROLLED) != 0 {
                text += " or any older version";
            }
        }
        text
    }
}

/// Whether an error says that the device lost a page.
fn is_loss(error: &FtlError) -> bool {
    use nand::NandError::Uncorrectable;
    matches!(error, FtlError::Lost { .. } | FtlError::Damaged { .. } | FtlError::Nand(Uncorrectable { .. }))
}

/// How a read that broke no promise came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The last version.
    Expected,
    /// Another version that is allowed.
    Other,
    /// An error about a page that the device took.
    Error,
}

fn name(version: u16) -> String {
    if version == 0 { "unwritten".into() } else { format!("version {version}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(lpn: u32, version: u16) -> Result<Stamp, FtlError> {
        Ok(if version == 0 { Stamp::UNWRITTEN } else { Stamp { lpn: Lpn(lpn), version } })
    }

    fn write(model: &mut Model, lpn: u32) -> u16 {
        let version = model.begin_write(lpn).version;
        model.complete_write(lpn);
        version
    }

    #[test]
    fn a_completed_write_is_held_to_at_once_or_from_the_flush_on() {
        for (durable, undone) in [(Durability::OnCompletion, false), (Durability::OnFlush, true)] {
            let mut model = Model::new(durable, 4);
            let first = write(&mut model, 1);
            model.complete_flush();
            let second = write(&mut model, 1);
            assert!(model.read(1, stamp(1, first)).is_err(), "power never went");
            let mut cut = model.clone();
            cut.cut();
            assert_eq!(cut.clone().read(1, stamp(1, first)).is_ok(), undone);
            assert!(cut.clone().read(1, stamp(1, 0)).is_err());
            model.complete_flush();
            model.cut();
            assert!(model.read(1, stamp(1, first)).is_err() && model.read(1, stamp(1, second)).is_ok());
        }
    }

    #[test]
    fn a_write_under_way_is_there_or_not_and_stays_what_it_was_read_as() {
        let mut model = Model::new(Durability::OnCompletion, 4);
        let old = write(&mut model, 2);
        let new = model.begin_write(2).version;
        assert!(model.clone().read(2, stamp(2, new)).is_err(), "power never went");
        model.cut();
        for (seen, other) in [(old, new), (new, old)] {
            let mut model = model.clone();
            assert!(model.read(2, stamp(2, seen)).is_ok());
            assert!(model.read(2, stamp(2, other)).is_err());
            model.cut();
            assert!(model.read(2, stamp(2, other)).is_err(), "read before the cut");
        }
    }

    fn trim(model: &mut Model, lpn: u32) {
        model.begin_trim(lpn, 1);
        model.complete_trim(lpn, 1);
    }

    #[test]
    fn a_flushed_trim_stays_until_the_page_is_written_again() {
        for durable in [Durability::OnCompletion, Durability::OnFlush, Durability::Battery] {
            let mut model = Model::new(durable, 4);
            let old = write(&mut model, 1);
            model.complete_flush();
            trim(&mut model, 1);
            let mut cut = model.clone();
            cut.cut();
            assert!(cut.read(1, stamp(1, old)).is_ok(), "not flushed");
            cut.complete_flush();
            cut.cut();
            assert!(cut.read(1, stamp(1, 0)).is_err(), "read as its old version, and flushed");
            model.complete_flush();
            // Another trim of the page does not make the first one less final.
            trim(&mut model, 1);
            for _ in 0..2 {
                model.cut();
                assert!(model.clone().read(1, stamp(1, old)).is_err() && model.read(1, stamp(1, 0)).is_ok());
            }
            let new = write(&mut model, 1);
            trim(&mut model, 1);
            model.cut();
            assert!(model.clone().read(1, stamp(1, new)).is_ok() && model.read(1, stamp(1, 0)).is_ok());
        }
    }

    #[test]
    fn a_trim_under_way_at_a_cut_is_final_once_it_was_read_and_flushed() {
        let mut model = Model::new(Durability::OnCompletion, 4);
        let old = write(&mut model, 1);
        model.begin_trim(1, 1);
        model.cut();
        let unread = model.clone();
        assert!(model.read(1, stamp(1, 0)).is_ok());
        for (mut model, undone) in [(model, false), (unread, true)] {
            model.complete_flush();
            model.cut();
            assert_eq!(model.read(1, stamp(1, old)).is_ok(), undone);
        }
    }

    #[test]
    fn a_flush_after_a_cut_settles_only_pages_that_were_read_since() {
        let mut model = Model::new(Durability::OnCompletion, 4);
        let old = write(&mut model, 1);
        let new = model.begin_write(1).version;
        model.cut();
        let mut read = model.clone();
        assert!(read.read(1, stamp(1, old)).is_ok());
        for (mut model, either) in [(model, true), (read, false)] {
            model.complete_flush();
            model.cut();
            assert!(model.clone().read(1, stamp(1, old)).is_ok());
            assert_eq!(model.read(1, stamp(1, new)).is_ok(), either);
        }
    }

    #[test]
    fn a_flush_after_an_error_makes_no_trim_final_that_a_read_found_undone() {
        let mut model = Model::new(Durability::OnCompletion, 4);
        let old = write(&mut model, 1);
        model.begin_trim(1, 1);
        model.cut();
        assert!(model.read(1, stamp(1, old)).is_ok());
        let lost = || Err(FtlError::Lost { lpn: Lpn(1) });
        assert!(model.read(1, lost()).is_ok());
        assert!(model.clone().read(1, stamp(1, 0)).is_err(), "power never went");
        model.complete_flush();
        model.cut();
        assert!(model.clone().read(1, lost()).is_ok() && model.clone().read(1, stamp(1, old)).is_ok());
        assert!(model.read(1, stamp(1, 0)).is_err());
    }

    #[test]
    fn metadata_that_the_device_takes_may_undo_a_flushed_trim() {
        let mut model = Model::new(Durability::OnCompletion, 4);
        let old = write(&mut model, 1);
        trim(&mut model, 1);
        model.complete_flush();
        model.harm_trims();
        assert!(model.read(1, stamp(1, old)).is_ok());
    }

    #[test]
    fn a_page_that_the_device_took_is_an_error_and_never_an_older_version() {
        let lost = || Err(FtlError::Lost { lpn: Lpn(1) });
        let mut model = Model::new(Durability::OnCompletion, 4);
        let (old, new) = (write(&mut model, 1), write(&mut model, 1));
        assert!(model.clone().read(1, lost()).is_err(), "nothing was taken");
        model.harm(1);
        model.cut();
        assert!(model.clone().read(1, lost()).is_ok() && model.clone().read(1, stamp(1, new)).is_ok());
        assert!(model.clone().read(1, stamp(1, old)).is_err() && model.clone().read(1, stamp(1, 0)).is_err());
        let mut all = Model::new(Durability::OnCompletion, 4);
        write(&mut all, 1);
        let new = write(&mut all, 1);
        all.lose_metadata();
        all.cut();
        assert!(all.clone().read(1, stamp(1, new)).is_ok() && all.clone().read(1, lost()).is_ok());
        assert!(all.clone().read(1, stamp(1, new - 1)).is_err() && all.clone().read(1, stamp(1, 0)).is_err());
        model.harm_unseen(1);
        assert!(model.read(1, stamp(1, old)).is_ok());
    }

    #[test]
    fn without_a_battery_a_harmed_page_that_was_read_is_spared_unless_it_fades() {
        let lost = || Err(FtlError::Lost { lpn: Lpn(1) });
        let mut model = Model::new(Durability::Battery, 4).without_battery();
        let new = write(&mut model, 1);
        model.harm(1);
        let mut fading = model.clone();
        fading.fade(1);
        for model in [&mut model, &mut fading] {
            assert!(model.read(1, stamp(1, new)).is_ok());
        }
        assert!(model.read(1, lost()).is_err() && fading.read(1, lost()).is_ok());
    }

    #[test]
    fn without_a_battery_what_was_read_fails_later_only_if_a_copy_was_in_a_half_erased_block() {
        let lost = || Err(FtlError::Lost { lpn: Lpn(1) });
        let mut model = Model::new(Durability::Battery, 4).without_battery();
        let (old, new) = (write(&mut model, 1), write(&mut model, 1));
        model.cut();
        let mut fading = model.clone();
        fading.fade(1);
        for model in [&mut model, &mut fading] {
            assert!(model.clone().read(1, lost()).is_ok());
            assert!(model.read(1, stamp(1, old)).is_ok());
        }
        assert!(model.read(1, lost()).is_err());
        assert!(fading.clone().read(1, stamp(1, new)).is_err() && fading.clone().read(1, lost()).is_ok());
        write(&mut fading, 1);
        assert!(fading.read(1, lost()).is_err());
        let mut powered = Model::new(Durability::Battery, 4);
        write(&mut powered, 1);
        powered.fade(1);
        powered.cut();
        assert!(powered.read(1, lost()).is_err(), "the battery said which copy counts");
    }

    #[test]
    fn a_trim_may_be_undone_but_never_to_data_of_another_page() {
        let mut model = Model::new(Durability::OnCompletion, 4);
        let (mine, others) = (write(&mut model, 0), write(&mut model, 1));
        model.begin_trim(0, 1);
        model.complete_trim(0, 1);
        assert!(model.read(0, stamp(0, mine)).is_err(), "power never went");
        model.cut();
        assert!(model.clone().read(0, stamp(0, mine)).is_ok() && model.clone().read(0, stamp(0, 0)).is_ok());
        assert!(model.clone().read(0, stamp(0, others)).is_err() && model.read(0, stamp(1, others)).is_err());
    }
}
