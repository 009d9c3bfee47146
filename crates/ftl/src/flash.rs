//! The accounting layer: every flash operation of every FTL passes here with its purpose.
//!
//! Counting is always on and costs an addition. With [`Flash::set_logging`] each operation is also
//! kept, in order, for a timing model to drain; the core itself holds no clock.

mod retire;
mod tired;

use alloc::vec::Vec;
use core::ops::Range;
use nand::{BlockId, Flags, MetaPage, Nand, NandError, PageKind, Ppn, Spare};

/// Why a flash operation was done. Write-amplification is split along these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Purpose {
    /// The page the host reads or writes.
    Host,
    /// Moving host data, and erasing blocks of host data.
    Gc,
    /// Fetching and updating translation pages.
    Translation,
    /// Moving translation pages, and erasing their blocks.
    TranslationGc,
    /// Updating a flash-resident page-validity store.
    Validity,
    /// Asking a flash-resident page-validity store what lives in a victim.
    ValidityQuery,
    /// Moving pages of a page-validity store, and erasing their blocks.
    ValidityGc,
    /// Synchronising or saving state so that recovery is short.
    Checkpoint,
    /// Rebuilding state after power loss.
    Recovery,
    /// Evening out erase counts.
    Wear,
    /// Moving data that can barely be read any more.
    Refresh,
}

impl Purpose {
    /// Every purpose, in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::Host,
        Self::Gc,
        Self::Translation,
        Self::TranslationGc,
        Self::Validity,
        Self::ValidityQuery,
        Self::ValidityGc,
        Self::Checkpoint,
        Self::Recovery,
        Self::Wear,
        Self::Refresh,
    ];

    /// The name used in reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Gc => "gc",
            Self::Translation => "translation",
            Self::TranslationGc => "translation_gc",
            Self::Validity => "validity",
            Self::ValidityQuery => "validity_query",
            Self::ValidityGc => "validity_gc",
            Self::Checkpoint => "checkpoint",
            Self::Recovery => "recovery",
            Self::Wear => "wear",
            Self::Refresh => "refresh",
        }
    }
}

/// How often each operation was done for one purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCounts {
    /// Whole pages read.
    pub reads: u64,
    /// Spare areas read alone.
    pub spare_reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Spare areas programmed again to set flags.
    pub flag_programs: u64,
}

/// Operation counts by purpose. A failed operation counts: the device spent the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    by_purpose: [OpCounts; Purpose::ALL.len()],
}

impl Counts {
    /// The counts of one purpose.
    #[inline]
    #[must_use]
    pub const fn of(&self, purpose: Purpose) -> &OpCounts {
        &self.by_purpose[purpose as usize]
    }

    #[inline]
    fn of_mut(&mut self, purpose: Purpose) -> &mut OpCounts {
        &mut self.by_purpose[purpose as usize]
    }

    /// The sum over all purposes.
    #[must_use]
    pub fn total(&self) -> OpCounts {
        self.by_purpose.iter().fold(OpCounts::default(), |sum, c| OpCounts {
            reads: sum.reads + c.reads,
            spare_reads: sum.spare_reads + c.spare_reads,
            programs: sum.programs + c.programs,
            erases: sum.erases + c.erases,
            flag_programs: sum.flag_programs + c.flag_programs,
        })
    }

    /// What was done since `earlier`, which must be an earlier state of the same counts.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut out = *self;
        for (now, then) in out.by_purpose.iter_mut().zip(&earlier.by_purpose) {
            now.reads -= then.reads;
            now.spare_reads -= then.spare_reads;
            now.programs -= then.programs;
            now.erases -= then.erases;
            now.flag_programs -= then.flag_programs;
        }
        out
    }
}

/// What kind of flash operation was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OpKind {
    /// Read of a whole page.
    Read,
    /// Read of a spare area.
    SpareRead,
    /// Program of a page.
    Program,
    /// Read of `from` and program of `page`.
    Copy,
    /// Erase of the block whose first page is `page`.
    Erase,
    /// Program of the flags of `page`.
    Flags,
}

/// Which logged operations need not wait for each other.
///
/// The FTL does its operations one after the other, so that each waits for all before it. Where
/// neither data nor recovery needs that, an FTL says so: a *section* is a run of operations in
/// *branches*. Operations of a branch follow each other. Those of different branches may run
/// together, with two exceptions: what was programmed in a section is read in it only afterwards,
/// and what is not a copy but changes flash waits for the copies before it. Whatever comes after a
/// section waits for all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    /// The section, by a number that differs from those of the sections before and after; 0 for
    /// none.
    pub section: u32,
    /// The branch within the section.
    pub number: u32,
}

impl Branch {
    /// Of an operation that waits for all before it.
    pub const NONE: Self = Self { section: 0, number: 0 };
}

/// One logged flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// What was done.
    pub kind: OpKind,
    /// What for.
    pub purpose: Purpose,
    /// The page (of an erase, the first page of the block).
    pub page: Ppn,
    /// Of a copy, where from; else [`Ppn::NONE`].
    pub from: Ppn,
    /// What it need not wait for.
    pub branch: Branch,
}

/// A NAND device behind the accounting layer.
#[derive(Clone, Debug)]
pub struct Flash<N> {
    nand: N,
    counts: Counts,
    log: Vec<Op>,
    logging: bool,
    /// Of the operations that come next.
    branch: Branch,
    /// The number of the last section.
    sections: u32,
    /// Corrected bits from which on a page is to be moved.
    tiring_bits: u32,
    /// Blocks with such a page. Few are kept: others are seen again when they are read again.
    tired: [BlockId; 4],
    /// Why the device takes no more programs and erases, if its host failed.
    host_failed: Option<NandError>,
    /// Pages that do not count whatever they read as, until their block is erased.
    set_aside: Vec<Ppn>,
}

impl<N: Nand> Flash<N> {
    /// Wraps a device; all counts are zero.
    #[must_use]
    pub fn new(nand: N) -> Self {
        let tiring_bits = match nand.correctable_bits() {
            0 => u32::MAX,
            bits => 3 * bits / 4 + 1,
        };
        Self {
            nand,
            counts: Counts::default(),
            log: Vec::new(),
            logging: false,
            branch: Branch::NONE,
            sections: 0,
            tiring_bits,
            tired: [BlockId::NONE; 4],
            host_failed: None,
            set_aside: Vec::new(),
        }
    }

    /// Pages that mounts do not count, in the order in which they were set aside.
    pub fn set_aside(&self) -> &[Ppn] {
        &self.set_aside
    }

    /// A page is not to count until its block is erased. What is programmed there then is another
    /// page, which counts.
    pub fn put_aside(&mut self, ppn: Ppn) {
        debug_assert!(!self.set_aside.contains(&ppn), "{ppn} was set aside before");
        self.set_aside.push(ppn);
    }

    /// Every page counts again.
    pub fn count_all(&mut self) {
        self.set_aside.clear();
    }

    /// The device.
    #[inline]
    pub fn nand(&self) -> &N {
        &self.nand
    }

    /// The device, for a harness that injects faults or takes snapshots.
    #[inline]
    pub fn nand_mut(&mut self) -> &mut N {
        &mut self.nand
    }

    /// Gives the device back.
    pub fn into_nand(self) -> N {
        self.nand
    }

    /// Operations so far.
    #[inline]
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Starts or stops keeping each operation for [`Flash::drain_log`].
    pub fn set_logging(&mut self, on: bool) {
        self.logging = on;
    }

    /// Hands over the operations logged since the last call, in order.
    pub fn drain_log(&mut self) -> alloc::vec::Drain<'_, Op> {
        self.log.drain(..)
    }

    #[inline]
    fn note(&mut self, kind: OpKind, purpose: Purpose, page: Ppn, from: Ppn) {
        if self.logging {
            self.log.push(Op { kind, purpose, page, from, branch: self.branch });
        }
    }

    /// Begins a branch of the section under way, or of a new one: until the next branch or
    /// [`Flash::join`], operations wait for no other branch ([`Branch`]). Without a log it does
    /// nothing.
    #[inline]
    pub fn branch(&mut self) {
        if !self.logging {
            return;
        }
        if self.branch == Branch::NONE {
            self.sections = self.sections.wrapping_add(1).max(1);
            self.branch = Branch { section: self.sections, number: 0 };
        } else {
            self.branch.number += 1;
        }
    }

    /// Ends the section under way, if there is one: what comes next waits for all of it.
    #[inline]
    pub fn join(&mut self) {
        self.branch = Branch::NONE;
    }

    /// [`Nand::read`], counted.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn read(&mut self, purpose: Purpose, ppn: Ppn, out: &mut N::Payload) -> Result<Spare, NandError> {
        self.counts.of_mut(purpose).reads += 1;
        self.note(OpKind::Read, purpose, ppn, Ppn::NONE);
        let outcome = self.nand.read(ppn, out);
        self.feel(ppn);
        outcome
    }

    /// [`Nand::read_meta`], counted.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn read_meta(&mut self, purpose: Purpose, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.counts.of_mut(purpose).reads += 1;
        self.note(OpKind::Read, purpose, ppn, Ppn::NONE);
        let outcome = self.nand.read_meta(ppn, out);
        self.feel(ppn);
        outcome
    }

    /// [`Nand::read_meta_part`], counted as a read.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn read_meta_part(
        &mut self,
        purpose: Purpose,
        ppn: Ppn,
        out: &mut [u8],
        needed: Range<usize>,
    ) -> Result<Spare, NandError> {
        self.counts.of_mut(purpose).reads += 1;
        self.note(OpKind::Read, purpose, ppn, Ppn::NONE);
        let outcome = self.nand.read_meta_part(ppn, out, needed);
        self.feel(ppn);
        outcome
    }

    /// [`Nand::probe`], counted as a read.
    ///
    /// # Errors
    /// Those of the device.
    pub fn probe(&mut self, purpose: Purpose, ppn: Ppn) -> Result<Spare, NandError> {
        self.counts.of_mut(purpose).reads += 1;
        self.note(OpKind::Read, purpose, ppn, Ppn::NONE);
        let outcome = self.nand.probe(ppn);
        self.feel(ppn);
        outcome
    }

    /// [`Nand::read_spare`], counted.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn read_spare(&mut self, purpose: Purpose, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        self.counts.of_mut(purpose).spare_reads += 1;
        self.note(OpKind::SpareRead, purpose, ppn, Ppn::NONE);
        self.nand.read_spare(ppn)
    }

    /// The spare area of a page that is about to be read or copied, and comes with it: not counted.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn spare_of_read(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        self.nand.read_spare(ppn)
    }

    /// [`Nand::program`], counted.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn program(&mut self, purpose: Purpose, ppn: Ppn, data: &N::Payload, spare: &Spare) -> Result<(), NandError> {
        debug_assert!(spare.kind == PageKind::User, "{ppn} is metadata");
        self.counts.of_mut(purpose).programs += 1;
        self.note(OpKind::Program, purpose, ppn, Ppn::NONE);
        let outcome = self.nand.program(ppn, data, spare);
        self.changed(outcome)
    }

    /// [`Nand::program_meta`], counted.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn program_meta(&mut self, purpose: Purpose, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.counts.of_mut(purpose).programs += 1;
        self.note(OpKind::Program, purpose, ppn, Ppn::NONE);
        let outcome = self.nand.program_meta(ppn, data, spare);
        self.changed(outcome)
    }

    /// [`Nand::program_meta_page`], counted.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn program_meta_page(
        &mut self,
        purpose: Purpose,
        ppn: Ppn,
        page: &mut MetaPage,
        spare: &Spare,
    ) -> Result<(), NandError> {
        self.counts.of_mut(purpose).programs += 1;
        self.note(OpKind::Program, purpose, ppn, Ppn::NONE);
        let outcome = self.nand.program_meta_page(ppn, page, spare);
        self.changed(outcome)
    }

    /// Passes on what became of a change, and notes if it was the last one.
    #[inline]
    fn changed(&mut self, outcome: Result<(), NandError>) -> Result<(), NandError> {
        match outcome {
            Err(NandError::Host { operation: "read", .. }) => {}
            Err(error @ NandError::Host { .. }) => self.host_failed = Some(error),
            _ => {}
        }
        outcome
    }

    /// Why the device takes no more programs and erases, if its host failed. What the FTL was doing
    /// then may be done in part, so that it must not go on with it.
    ///
    /// # Errors
    /// [`NandError::Host`].
    #[inline]
    pub fn check_host(&self) -> Result<(), NandError> {
        self.host_failed.map_or(Ok(()), Err)
    }

    /// [`Nand::copy`], counted as one read and one program.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn copy(&mut self, purpose: Purpose, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        debug_assert!(from != to, "{from} is copied to itself");
        let counts = self.counts.of_mut(purpose);
        counts.reads += 1;
        counts.programs += 1;
        self.note(OpKind::Copy, purpose, to, from);
        let outcome = self.nand.copy(from, to, spare);
        self.changed(outcome)
    }

    /// [`Nand::erase`], counted.
    ///
    /// # Errors
    /// Those of the device.
    #[inline]
    pub fn erase(&mut self, purpose: Purpose, block: BlockId) -> Result<(), NandError> {
        self.counts.of_mut(purpose).erases += 1;
        let first = self.nand.geometry().page_at(block, 0);
        self.note(OpKind::Erase, purpose, first, Ppn::NONE);
        self.rested(block);
        let outcome = self.nand.erase(block);
        if outcome.is_ok() && !self.set_aside.is_empty() {
            let geometry = *self.nand.geometry();
            self.set_aside.retain(|ppn| geometry.block_of(*ppn) != block);
        }
        self.changed(outcome)
    }

    /// [`Nand::clear_flags`], counted.
    ///
    /// # Errors
    /// Those of the device.
    pub fn clear_flags(&mut self, purpose: Purpose, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        self.counts.of_mut(purpose).flag_programs += 1;
        self.note(OpKind::Flags, purpose, ppn, Ppn::NONE);
        let outcome = self.nand.clear_flags(ppn, flags);
        self.changed(outcome)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use nand::{Capabilities, Dimensions, Geometry, Law, Lpn, SimNand, Stamp};

    fn one_block() -> Flash<SimNand> {
        let geometry = Geometry::new(Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 1,
            pages_per_block: 4,
            page_bytes: 512,
            spare_bytes: 32,
        });
        let capabilities = Capabilities { spare_reprograms: 2, ..Capabilities::MODERN };
        Flash::new(SimNand::new(geometry.unwrap(), capabilities))
    }

    #[test]
    fn branches_of_a_section_are_told_apart_and_so_are_sections() {
        let mut flash = one_block();
        flash.set_logging(true);
        let mut branch = |marks: &[fn(&mut Flash<SimNand>)]| {
            marks.iter().for_each(|mark| mark(&mut flash));
            flash.read_spare(Purpose::Gc, Ppn(0)).unwrap();
            let op: Option<Op> = flash.drain_log().next();
            op.unwrap().branch
        };
        assert_eq!(branch(&[]), Branch::NONE);
        let first = branch(&[Flash::branch]);
        let (same, second) = (branch(&[]), branch(&[Flash::branch]));
        assert!(first.section != 0 && first == same);
        assert!(second.section == first.section && second.number != first.number);
        let next = branch(&[Flash::join, Flash::branch]);
        assert!(next.section != 0 && next.section != first.section);
        assert_eq!(branch(&[Flash::join]), Branch::NONE);
    }

    #[test]
    fn programs_of_flags_are_counted_apart_with_their_purpose() {
        let mut flash = one_block();
        let spare =
            Spare { kind: PageKind::User, tag: 1, seq: 1, erase_count: 0, erased_at: 0, aux: 0, flags: Flags::NONE };
        flash.program(Purpose::Host, Ppn(0), &Stamp { lpn: Lpn(1), version: 1 }, &spare).unwrap();
        let before = *flash.counts();
        flash.set_logging(true);
        flash.clear_flags(Purpose::Gc, Ppn(0), Flags::from_bits(1)).unwrap();
        flash.clear_flags(Purpose::Host, Ppn(0), Flags::from_bits(2)).unwrap();
        let refused = flash.clear_flags(Purpose::Host, Ppn(0), Flags::from_bits(4));
        assert!(matches!(refused, Err(NandError::Illegal { ppn: Ppn(0), law: Law::SpareReprogram, .. })));
        let found = flash.read_spare(Purpose::Host, Ppn(0)).unwrap().unwrap();
        assert_eq!(found, Spare { flags: Flags::from_bits(3), ..spare });
        let since = flash.counts().since(&before);
        let flags = |flag_programs| OpCounts { flag_programs, ..OpCounts::default() };
        assert_eq!(*since.of(Purpose::Gc), flags(1));
        assert_eq!(*since.of(Purpose::Host), OpCounts { spare_reads: 1, ..flags(2) });
        assert_eq!(since.total(), OpCounts { spare_reads: 1, ..flags(3) });
        let first = flash.drain_log().next();
        assert_eq!(
            first,
            Some(Op { kind: OpKind::Flags, purpose: Purpose::Gc, page: Ppn(0), from: Ppn::NONE, branch: Branch::NONE })
        );
    }

    #[test]
    fn a_page_set_aside_counts_again_once_its_block_is_erased() {
        let mut flash = one_block();
        flash.put_aside(Ppn(2));
        flash.put_aside(Ppn(1));
        assert_eq!(flash.set_aside(), [Ppn(2), Ppn(1)]);
        flash.erase(Purpose::Recovery, BlockId(0)).unwrap();
        assert_eq!(flash.set_aside(), []);
        flash.put_aside(Ppn(2));
        flash.count_all();
        assert_eq!(flash.set_aside(), []);
    }
}
