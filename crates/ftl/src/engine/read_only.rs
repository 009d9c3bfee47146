//! A disk that can only be read: what a mount makes of a device of which too many blocks have gone
//! bad to write to it.
//!
//! 1. Every spare area is read, whatever the FTL reads when it mounts, because what a battery, a
//!    checkpoint or a page-validity store would say may never have been written for want of a
//!    block.
//! 2. Of a logical page the newest copy counts. If each translation page speaks for every page of
//!    host data programmed before it, a copy older than that counts only if an entry leads to it,
//!    so that trims stay done.
//! 3. Under block mapping with log blocks the block that a merge or a collector was filling counts
//!    for nothing, as at every mount.
//! 4. A page whose program was cut short can read well at first and not later. Nothing can be
//!    programmed to settle that. So pages that may be such a one are read often, and count if they
//!    can be: under block mapping with log blocks those in doubt, else the last page of every
//!    block. A write or a flush that was never acknowledged may still come and go with mounts.
//!    Every other page reads as before.
//! 5. Nothing is programmed, nothing erased. It can be done any number of times.
//!
//! Takes as long as a full scan, and four bytes of RAM for each logical page.

use crate::config::Config;
use crate::contract::{Ftl, FtlError, MountReport, RamItem, RamReport, Shortage};
use crate::flash::{Flash, Purpose};
use crate::mapping::cached::{CachedMap, entries_of};
use crate::mapping::{LOST, is_page};
use crate::recovery::checkpoint::Checkpoint;
use crate::recovery::copies::{Copies, Doubt, read_often};
use crate::recovery::order;
use crate::recovery::scan::{Look, Mounts, Scan};
use crate::recovery::steps::Steps;
use crate::space::age::aged;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use nand::{Law, Lpn, Nand, NandError, PageKind, Payload, Ppn, Spare};

/// What a mount answers, whichever FTL it makes.
pub type Mounted<N> = Result<(Box<dyn Ftl<N>>, MountReport), FtlError>;

/// A mount that failed, and the device if it can be read all the same.
pub struct Unmounted<N> {
    /// Why.
    pub error: FtlError,
    /// The device.
    pub flash: Option<Box<Flash<N>>>,
    /// The page programmed last of those that counted, if it could not be read.
    pub doubtful: Option<Ppn>,
}

impl<N> From<FtlError> for Unmounted<N> {
    fn from(error: FtlError) -> Self {
        Self { error, flash: None, doubtful: None }
    }
}

impl<N> From<NandError> for Unmounted<N> {
    fn from(error: NandError) -> Self {
        FtlError::from(error).into()
    }
}

impl<N> Unmounted<N> {
    /// A mount that failed and gives the device back.
    pub fn with(flash: Flash<N>, error: FtlError) -> Self {
        Self { error, flash: Some(Box::new(flash)), doubtful: None }
    }

    /// As [`Unmounted::with`]. `newest` is the page programmed last of those that counted.
    pub fn in_doubt(flash: Flash<N>, error: FtlError, newest: Option<Ppn>) -> Self {
        let doubtful = newest.filter(|ppn| is_unreadable(&error, *ppn));
        Self { error, flash: Some(Box::new(flash)), doubtful }
    }
}

/// Whether an error says that this page cannot be read.
pub fn is_unreadable(error: &FtlError, page: Ppn) -> bool {
    matches!(error, FtlError::Nand(NandError::Uncorrectable { ppn } | NandError::Erased { ppn }) if *ppn == page)
}

/// How often a page is excluded at most. It was erased and programmed anew in between.
const TIMES: usize = 4;

/// Mounts without the pages that power loss left in doubt.
///
/// Whether the page programmed last was complete when power went nobody can tell from one look at
/// it. A mount copies it before it programs anything else. If that page cannot be read, whatever
/// for, its program was cut short, and nobody was told of it. So the mount is done again as if that
/// page had never been programmed. The next newest page is in doubt in its turn: an earlier mount
/// that was cut short may have been copying it.
///
/// `mount` is handed the pages excluded so far, but for those whose block it has erased since: what
/// it programmed there counts, unless that program failed: then the page is excluded again. No page
/// is excluded more than four times, so it ends.
///
/// # Errors
/// Those of the last round.
pub fn without_doubt<N: Nand, F>(
    mut flash: Flash<N>,
    mut mount: impl FnMut(Flash<N>, &[Ppn]) -> Result<F, Unmounted<N>>,
) -> Result<F, Unmounted<N>> {
    flash.count_all();
    let mut ever = Vec::new();
    loop {
        let excluded = flash.set_aside().to_vec();
        match mount(flash, &excluded) {
            Err(Unmounted { doubtful: Some(ppn), flash: Some(back), .. })
                if !back.set_aside().contains(&ppn) && ever.iter().filter(|page| **page == ppn).count() < TIMES =>
            {
                ever.push(ppn);
                flash = *back;
                flash.put_aside(ppn);
            }
            outcome => return outcome,
        }
    }
}

/// How the present copy of a logical page is told from older ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// By sequence number. Trims may be undone.
    Sequence,
    /// By sequence number, and by the trim map.
    TrimMap,
    /// By sequence number, and by translation pages, each of which speaks for every page of host
    /// data programmed before it.
    Entries,
    /// The same, of translation pages that say how much older their contents are.
    AgedEntries,
    /// The same, of translation pages that hold a past beside each entry
    /// ([`crate::mapping::cached::CachedOptions::pasts`]).
    AgedEntriesWithPasts,
    /// By sequence number, by what merges say of themselves ([`crate::recovery::mark`]), and by the
    /// youngest checkpoint, if there is one.
    Marks,
}

/// A disk that can only be read.
pub struct ReadOnlyFtl<N> {
    flash: Flash<N>,
    table: Vec<Ppn>,
    shortage: Shortage,
}

/// What is useful and not needed may go without if it finds no block to do it with.
///
/// # Errors
/// Any other than that.
pub fn unless_short(outcome: Result<(), FtlError>) -> Result<(), FtlError> {
    match outcome {
        Err(FtlError::NoSpace(_)) => Ok(()),
        other => other,
    }
}

/// The FTL that was mounted; if it lacks blocks to write, a disk that can be read.
///
/// # Errors
/// Why it could not be mounted; [`FtlError::Damaged`] if the device was formatted for something
/// else.
pub fn or_read_only<N: Nand + 'static, F: Ftl<N> + 'static>(
    outcome: Result<(F, MountReport), Unmounted<N>>,
    config: &Config,
    evidence: Evidence,
) -> Mounted<N> {
    match outcome {
        Ok((ftl, report)) => Ok((Box::new(ftl), report)),
        Err(unmounted) => read_only(unmounted, config, evidence),
    }
}

/// Of a mount that failed for want of blocks, a disk that can be read.
fn read_only<N: Nand + 'static>(unmounted: Unmounted<N>, config: &Config, evidence: Evidence) -> Mounted<N> {
    match unmounted {
        Unmounted { error: FtlError::NoSpace(shortage), flash: Some(flash), .. } => {
            let (ftl, report) = ReadOnlyFtl::mount(*flash, config, evidence, shortage)?;
            Ok((Box::new(ftl), report))
        }
        Unmounted { error, .. } => Err(error),
    }
}

impl<N: Nand> ReadOnlyFtl<N> {
    fn mount(
        mut flash: Flash<N>,
        config: &Config,
        evidence: Evidence,
        shortage: Shortage,
    ) -> Result<(Self, MountReport), FtlError> {
        let mut steps = Steps::begin(&flash);
        let (table, unreadable_pages) = match evidence {
            Evidence::Sequence
            | Evidence::TrimMap
            | Evidence::Entries
            | Evidence::AgedEntries
            | Evidence::AgedEntriesWithPasts => {
                let mounts = if evidence == Evidence::TrimMap { Mounts::Mark } else { Mounts::DoNotMark };
                let mut scan = Scan::run(&mut flash, config.logical_pages, mounts, Look::Often)?;
                if evidence == Evidence::TrimMap {
                    scan.forget_trimmed(&mut flash)?;
                }
                steps.end("scan every spare area", &flash);
                let unreadable = scan.excluded().len() as u64;
                if evidence != Evidence::Sequence {
                    let pasts = evidence == Evidence::AgedEntriesWithPasts;
                    let is_aged = pasts || evidence == Evidence::AgedEntries;
                    let written_at = if is_aged { aged } else { |spare: &Spare| spare.seq };
                    let table = with_translation_pages(&mut flash, scan, pasts, written_at)?;
                    steps.end("every translation page: trims", &flash);
                    (table, unreadable)
                } else {
                    (scan.into_table(), unreadable)
                }
            }
            Evidence::Marks => {
                let (copies, is_rolled) = settled(&mut flash, config.logical_pages)?;
                let mut table = vec![Ppn::NONE; config.logical_pages as usize];
                copies.newest().for_each(|(lpn, copy)| table[lpn.index()] = copy.ppn);
                let name = if is_rolled { "roll forward from a checkpoint" } else { "scan every spare area" };
                steps.end(name, &flash);
                (table, copies.unreadable)
            }
        };
        let rebuilt_entries = table.iter().filter(|ppn| is_page(**ppn)).count() as u64;
        debug_assert!(table.len() == config.logical_pages as usize);
        let report = MountReport { read_only: Some(shortage), ..steps.report(unreadable_pages, rebuilt_entries) };
        Ok((Self { flash, table, shortage }, report))
    }

    fn check_range(&self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        let logical_pages = self.logical_pages();
        if u64::from(lpn.0) + u64::from(count) <= u64::from(logical_pages) {
            Ok(())
        } else {
            Err(FtlError::OutOfRange { lpn, count, logical_pages })
        }
    }
}

/// What a disk with log blocks holds but for pages in doubt that cannot be read, and whether a
/// checkpoint says so.
fn settled<N: Nand>(flash: &mut Flash<N>, logical_pages: u32) -> Result<(Copies, bool), FtlError> {
    let mut excluded = Vec::new();
    'again: loop {
        let (checkpoint, _) = Checkpoint::find(flash, logical_pages)?;
        let rolled = match &checkpoint {
            Some(checkpoint) => checkpoint.roll_forward(flash, &excluded)?,
            None => None,
        };
        let is_rolled = rolled.is_some();
        let mut copies = match rolled {
            Some((copies, _)) => copies,
            None => Copies::scan(flash, logical_pages, &excluded)?,
        };
        while copies.take_back(flash)?.is_some() {}
        debug_assert!(excluded.len() <= flash.nand().geometry().pages() as usize);
        for Doubt { ppn, .. } in copies.in_doubt(flash)?.into_iter().filter(|doubt| !doubt.was_complete) {
            match read_often(flash, ppn) {
                Err(NandError::Uncorrectable { .. } | NandError::Erased { .. }) if !excluded.contains(&ppn) => {
                    excluded.push(ppn);
                    continue 'again;
                }
                Ok(()) | Err(NandError::Uncorrectable { .. } | NandError::Erased { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        return Ok((copies, is_rolled));
    }
}

/// The newest copies that a scan found, but where a translation page younger than a copy says
/// otherwise. One that cannot be read says nothing; the version before it then speaks for fewer
/// copies.
fn with_translation_pages<N: Nand>(
    flash: &mut Flash<N>,
    mut scan: Scan,
    pasts: bool,
    written_at: impl Fn(&Spare) -> u64,
) -> Result<Vec<Ppn>, FtlError> {
    let mut versions = core::mem::take(&mut scan.translation_pages);
    order::by_tag(&mut versions);
    let mut buffer = vec![0; flash.nand().geometry().page_bytes() as usize];
    let mut done = None;
    for (at, spare) in versions {
        if done == Some(spare.tag) {
            continue;
        }
        match flash.read_meta(Purpose::Recovery, at, &mut buffer) {
            Ok(_) => done = Some(spare.tag),
            Err(NandError::Uncorrectable { .. } | NandError::Erased { .. }) => continue,
            Err(error) => return Err(error.into()),
        }
        let per_page = entries_of(buffer.len() as u32, pasts);
        let entries = || CachedMap::entries(&buffer).take(per_page as usize);
        debug_assert!(done == Some(spare.tag));
        let first = u64::from(spare.tag) * u64::from(per_page);
        if first >= scan.copies.len() as u64 {
            let reason = "it lies outside the disk: the device was formatted with another size";
            return Err(FtlError::Damaged { structure: "translation page", ppn: at, reason });
        }
        // Number 0 stands for no copy.
        let written = written_at(&spare).max(1);
        for (copy, (lpn, entry)) in
            scan.copies[first as usize..].iter_mut().zip((first as u32..).map(Lpn).zip(entries()))
        {
            if copy.seq < written && copy.ppn != entry && (!is_page(entry) || may_hold(flash, entry, lpn)?) {
                copy.ppn = entry;
            }
        }
    }
    Ok(scan.into_table())
}

/// Whether a page holds a logical page, as far as it can be read.
fn may_hold<N: Nand>(flash: &mut Flash<N>, ppn: Ppn, lpn: Lpn) -> Result<bool, FtlError> {
    if ppn.0 >= flash.nand().geometry().pages() {
        return Ok(false);
    }
    match flash.read_spare(Purpose::Recovery, ppn) {
        Ok(spare) => Ok(spare.is_some_and(|spare| spare.kind == PageKind::User && spare.tag == lpn.0)),
        Err(NandError::Uncorrectable { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

impl<N: Nand> Ftl<N> for ReadOnlyFtl<N> {
    fn logical_pages(&self) -> u32 {
        self.table.len() as u32
    }

    fn read(&mut self, lpn: Lpn, out: &mut N::Payload) -> Result<(), FtlError> {
        self.check_range(lpn, 1)?;
        let ppn = self.table[lpn.index()];
        if !is_page(ppn) {
            out.clear();
            return if ppn == LOST { Err(FtlError::Lost { lpn }) } else { Ok(()) };
        }
        match self.flash.read(Purpose::Host, ppn, out) {
            Ok(spare) if spare.kind == PageKind::User && spare.tag == lpn.0 => Ok(()),
            Ok(_) => {
                let reason = "it leads to a page of something else";
                Err(FtlError::Damaged { structure: "mapping entry", ppn, reason })
            }
            // Trimmed, and found again in a block that was being erased; or a copy that says that
            // the page is lost.
            Err(NandError::Erased { .. } | NandError::Illegal { law: Law::PageContent, .. }) => {
                Err(FtlError::Lost { lpn })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn write(&mut self, lpn: Lpn, _: &N::Payload) -> Result<(), FtlError> {
        self.check_range(lpn, 1)?;
        Err(self.shortage.into())
    }

    fn trim(&mut self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        self.check_range(lpn, count)?;
        Err(self.shortage.into())
    }

    /// Nothing to do: nothing is ever written.
    fn flush(&mut self) -> Result<(), FtlError> {
        Ok(())
    }

    fn idle(&mut self) -> Result<bool, FtlError> {
        Ok(false)
    }

    fn ram(&self) -> RamReport {
        let bytes = (self.table.capacity() * size_of::<Ppn>()) as u64;
        vec![RamItem { name: "read_only_table", bytes }]
    }

    /// Nothing is ever programmed.
    fn free_blocks(&self) -> u32 {
        0
    }

    fn read_only(&self) -> Option<Shortage> {
        Some(self.shortage)
    }

    fn flash(&self) -> &Flash<N> {
        &self.flash
    }

    fn flash_mut(&mut self) -> &mut Flash<N> {
        &mut self.flash
    }

    fn into_flash(self: Box<Self>) -> Flash<N> {
        self.flash
    }

    /// Every page that is mapped names its logical page, as far as it can be read. It may be
    /// erased: a checkpoint names a trimmed page, and its block was being erased when power was
    /// cut.
    fn check(&mut self) -> Result<(), String> {
        for (lpn, ppn) in (0..).map(Lpn).zip(self.table.iter().copied()).filter(|(_, ppn)| is_page(*ppn)) {
            match self.flash.nand_mut().read_spare(ppn) {
                Ok(Some(spare)) if spare.kind == PageKind::User && spare.tag == lpn.0 => {}
                Ok(None) | Err(NandError::Uncorrectable { .. }) => {}
                other => return Err(format!("{lpn} is mapped to {ppn}, which holds {other:?}")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nand::{Blemish, Capabilities, Dimensions, FaultPlan, Faulty, Flags, Geometry, SimNand, Stamp};

    type Device = Faulty<SimNand>;

    const SHORTAGE: Shortage = Shortage { bad_blocks: 2, blocks: 4, needed: 3 };

    fn stamp(lpn: u32, version: u16) -> Stamp {
        Stamp { lpn: Lpn(lpn), version }
    }

    /// A flash with these pages: where, logical page, version, sequence number.
    fn flash(pages: &[(u32, u32, u16, u64)]) -> Flash<Device> {
        let geometry = Geometry::new(Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 4,
            pages_per_block: 4,
            page_bytes: 512,
            spare_bytes: 32,
        });
        let nand = Faulty::new(SimNand::new(geometry.unwrap(), Capabilities::MODERN), FaultPlan::default());
        let mut flash = Flash::new(nand);
        for &(ppn, lpn, version, seq) in pages {
            let kind = PageKind::User;
            let spare = Spare { kind, tag: lpn, seq, erase_count: 0, erased_at: 0, aux: 0, flags: Flags::NONE };
            flash.nand_mut().program(Ppn(ppn), &stamp(lpn, version), &spare).unwrap();
        }
        flash
    }

    fn mount(flash: Flash<Device>, evidence: Evidence) -> ReadOnlyFtl<Device> {
        ReadOnlyFtl::mount(flash, &Config::new(8), evidence, SHORTAGE).unwrap().0
    }

    /// A page whose program was cut short, on a disk without a block to copy it to: it reads well a
    /// few times, and then no more.
    #[test]
    fn a_page_that_fades_gives_way_to_the_version_before_it() {
        let mut flash = flash(&[(0, 0, 1, 10), (4, 0, 2, 11)]);
        flash.nand_mut().damage(Ppn(4), Blemish::Fading(4));
        for evidence in [Evidence::Sequence, Evidence::TrimMap, Evidence::Entries, Evidence::AgedEntries] {
            let mut disk = mount(flash, evidence);
            let mut out = stamp(0, 0);
            for _ in 0..9 {
                disk.read(Lpn(0), &mut out).unwrap();
                assert_eq!(out, stamp(0, 1), "{evidence:?}");
            }
            flash = Box::new(disk).into_flash();
            flash.nand_mut().damage(Ppn(4), Blemish::Fading(4));
        }
    }

    /// The last page of a block before the one that was written last: its program was over. Only
    /// mounts that mark what they program let a scan know.
    #[test]
    fn a_worn_page_gives_way_to_no_version_before_it() {
        for (evidence, is_older) in [(Evidence::TrimMap, false), (Evidence::Sequence, true)] {
            let mut flash = flash(&[(0, 0, 1, 10), (4, 0, 2, 11), (8, 1, 1, 12)]);
            flash.nand_mut().damage(Ppn(4), Blemish::DataUnreadable);
            let mut disk = mount(flash, evidence);
            let mut out = stamp(0, 0);
            let read = disk.read(Lpn(0), &mut out);
            if is_older {
                assert_eq!((read, out), (Ok(()), stamp(0, 1)), "{evidence:?}");
            } else {
                assert_eq!(read, Err(NandError::Uncorrectable { ppn: Ppn(4) }.into()), "{evidence:?}");
            }
            disk.read(Lpn(1), &mut out).unwrap();
            assert_eq!(out, stamp(1, 1), "{evidence:?}");
        }
    }

    /// A round erased the block of a page that the one before had excluded, and copied something
    /// there. Excluded again, it would be lost.
    #[test]
    fn a_page_counts_again_that_a_mount_programmed_anew() {
        let flash = flash(&[(0, 0, 1, 10), (4, 1, 1, 11)]);
        let mut rounds = Vec::new();
        let outcome = without_doubt(flash, |mut flash, excluded| {
            rounds.push(excluded.to_vec());
            let doubtful = match rounds.len() {
                1 => Ppn(4),
                2 => {
                    flash.erase(Purpose::Recovery, flash.nand().geometry().block_of(Ppn(4))).unwrap();
                    Ppn(0)
                }
                _ => return Ok(()),
            };
            let error = NandError::Uncorrectable { ppn: doubtful }.into();
            Err(Unmounted::in_doubt(flash, error, Some(doubtful)))
        });
        assert!(outcome.is_ok());
        assert_eq!(rounds, [vec![], vec![Ppn(4)], vec![Ppn(0)]]);
    }

    #[test]
    fn a_page_that_always_fails_ends_a_mount() {
        let mut rounds = 0;
        let outcome = without_doubt(flash(&[(0, 0, 1, 10)]), |mut flash, _| -> Result<(), _> {
            rounds += 1;
            flash.erase(Purpose::Recovery, flash.nand().geometry().block_of(Ppn(0))).unwrap();
            Err(Unmounted::in_doubt(flash, NandError::Uncorrectable { ppn: Ppn(0) }.into(), Some(Ppn(0))))
        });
        assert!(outcome.is_err_and(|unmounted| is_unreadable(&unmounted.error, Ppn(0))));
        assert_eq!(rounds, TIMES + 1);
    }
}
