//! A page harmed after the workload, while power is on or before a mount.

use crate::bench::Bench;
use crate::case::{Harm, Worn};
use crate::explorer::Line;
use crate::model::{Model, Seen};
use crate::other::Record;
use crate::report::outcome_name;
use crate::rng::Rng;
use crate::shape::LIMIT;
use crate::stamps::Stamps;
use crate::tap::{At, Image, Outcomes, Tap};
use crate::workload::Step;
use nand::{Faulty, Lpn, Nand, PageKind, Ppn, SimNand, Snapshot, Stamp};

type Flash = Faulty<SimNand>;

/// Does the workload, no cuts.
pub(super) fn work(bench: &Bench<'_>) -> Result<Line, String> {
    let mut line = bench.format()?;
    for step in &bench.steps {
        apply(&mut line, *step)?;
    }
    apply(&mut line, Step::Flush)?;
    Ok(line)
}

/// Does a step, and holds the FTL to the model.
pub(super) fn apply(line: &mut Line, step: Step) -> Result<(), String> {
    let pages = line.model.logical_pages();
    line.device.get().begin(Tap::OFF, 0, LIMIT);
    match step {
        Step::Write { lpn, count } => {
            for lpn in (0..count.min(pages)).map(|i| (lpn % pages + i) % pages) {
                let stamp = line.model.begin_write(lpn);
                match line.ftl.write_stamp(Lpn(lpn), stamp) {
                    Ok(()) => line.model.complete_write(lpn),
                    Err(error) if line.model.may_fail(&error) => line.model.fail(lpn, 1),
                    Err(error) => return Err(format!("writing: {error}")),
                }
            }
        }
        Step::Trim { lpn, count } => {
            let (lpn, count) = (lpn % pages, count.min(pages - lpn % pages));
            line.model.begin_trim(lpn, count);
            match line.ftl.trim(Lpn(lpn), count) {
                Ok(()) => line.model.complete_trim(lpn, count),
                Err(error) if line.model.may_fail(&error) => line.model.fail(lpn, count),
                Err(error) => return Err(format!("trimming: {error}")),
            }
        }
        Step::Read { lpn } => {
            read(line, lpn % pages)?;
        }
        Step::Flush => match line.ftl.flush() {
            Ok(()) => line.model.complete_flush(),
            Err(error) if line.model.may_fail(&error) => {}
            Err(error) => return Err(format!("flushing: {error}")),
        },
        Step::Idle => match line.ftl.idle() {
            Ok(_) => {}
            Err(error) if line.model.may_fail(&error) => {}
            Err(error) => return Err(format!("idling: {error}")),
        },
    }
    Ok(())
}

fn read(line: &mut Line, lpn: u32) -> Result<Seen, String> {
    let got = line.ftl.read_stamp(Lpn(lpn));
    line.model.read(lpn, got)
}

pub(super) fn read_all(line: &mut Line) -> Result<(), String> {
    (0..line.model.logical_pages()).try_for_each(|lpn| apply(line, Step::Read { lpn }))
}

/// Pages that hold something after the workload.
pub(crate) fn pages(bench: &Bench<'_>) -> Result<Vec<u32>, String> {
    let line = work(bench)?;
    let mut device = line.device.get();
    let geometry = *device.geometry();
    let nand = device.flash().inner_mut();
    Ok((0..geometry.pages()).filter(|ppn| matches!(nand.read_spare(Ppn(*ppn)), Ok(Some(_)))).collect())
}

/// Harms a page, also in the eyes of the model; the logical page that suffers, if it is one only.
/// `Err` if nothing is there.
fn harm_page(bench: &Bench<'_>, flash: &mut Flash, model: &mut Model, worn: Worn) -> Result<Option<u32>, Nothing> {
    let Worn { ppn, harm, mounted, other } = worn;
    let Ok(Some(spare)) = flash.inner_mut().read_spare(Ppn(ppn)) else { return Err(Nothing) };
    let (blemish, pages) = (harm.blemish(flash.plan().correctable_bits), flash.geometry().pages());
    let nand = flash.inner_mut();
    let seqs = (0..pages).filter_map(|ppn| nand.read_spare(Ppn(ppn)).ok().flatten()).map(|spare| spare.seq);
    let is_last = seqs.max() == Some(spare.seq);
    flash.damage(Ppn(ppn), blemish);
    if harm == Harm::Correctable {
        return Ok(None);
    }
    if spare.kind == PageKind::User {
        if harm.fades() {
            // Also of a superseded version: without a battery it may be the one that is left.
            model.fade(spare.tag);
        }
        let mut stamp = Stamp::UNWRITTEN;
        if flash.inner_mut().read(Ppn(ppn), &mut stamp).is_ok() && !model.is_current(stamp) {
            // Nobody needs a superseded version.
            return Ok(Some(spare.tag));
        }
        if mounted && (is_last || !harm.spares_oob()) {
            model.harm_unseen(spare.tag);
        } else {
            model.harm(spare.tag);
        }
        return Ok(Some(spare.tag));
    }
    if spare.kind == PageKind::Checkpoint {
        // What a battery saved, or a checkpoint: without it the pages of host data say all that was
        // written.
        model.battery_died();
    }
    if bench.entry.info.outlives_worn_pages && other.is_none() {
        model.harm_trims();
    } else {
        model.lose_metadata();
    }
    Ok(None)
}

/// Harms the pages of a scenario; the logical page that suffers, if it is one only.
fn harm(
    bench: &Bench<'_>,
    flash: &mut Flash,
    model: &mut Model,
    worn: Worn,
    record: &mut Record,
) -> Result<Option<u32>, Nothing> {
    let harmed = harm_page(bench, flash, model, worn)?;
    let Some(other) = worn.other else {
        record.fault = match (worn.mounted, worn.harm, harmed) {
            (_, Harm::Correctable, _) => "correctable bits",
            (false, _, Some(_)) => "worn host page, power on",
            (false, _, None) => "worn metadata page, power on",
            (true, harm, Some(_)) if harm.spares_oob() => "worn host page, OOB good, then a mount",
            (true, _, Some(_)) => "worn host page, then a mount",
            (true, _, None) => "worn metadata page, then a mount",
        };
        return Ok(harmed);
    };
    record.fault = if worn.mounted { "two worn pages, then a mount" } else { "two worn pages, power on" };
    harm_page(bench, flash, model, Worn { ppn: other, ..worn }).map(|_| None)
}

/// The page to be harmed holds nothing.
struct Nothing;

/// Every page but that of the harmed one reads right, and that one as an error or right, also after
/// its block was collected.
pub(super) fn powered(bench: &Bench<'_>, worn: Worn, record: &mut Record) -> Result<(), String> {
    let mut line = work(bench)?;
    record.fault = "worn page, power on";
    let harmed = harm(bench, line.device.get().flash(), &mut line.model, worn, record);
    let Ok(harmed) = harmed else { return Ok(()) };
    let outcome = read_all(&mut line)
        .and_then(|()| write_others(&mut line, worn.ppn, harmed))
        .and_then(|()| accepts_writes(&mut line));
    record.tally += line.model.take_tally();
    outcome
}

/// What a workload leaves when its disk is put away: the device, and what its host expects.
pub(crate) struct Left {
    flash: Flash,
    model: Model,
}

impl Left {
    fn by(bench: &Bench<'_>) -> Result<Self, String> {
        let mut line = work(bench)?;
        bench.save(&mut *line.ftl)?;
        let flash = line.device.get().flash().snapshot();
        Ok(Self { flash, model: line.model })
    }
}

/// The same after a mount, and after another. Of a page that cannot be read at all nobody knows
/// then whose it was: it may also read as an older version of itself. The workload is done if
/// nothing is `left` of it yet.
pub(super) fn mounted(
    bench: &Bench<'_>,
    worn: Worn,
    left: &mut Option<Left>,
    record: &mut Record,
) -> Result<(), String> {
    record.fault = "worn page, then a mount";
    let left = match left {
        Some(left) => left,
        None => left.insert(Left::by(bench)?),
    };
    let (mut flash, mut model) = (left.flash.snapshot(), left.model.clone());
    let Ok(harmed) = harm(bench, &mut flash, &mut model, worn, record) else { return Ok(()) };
    let tap = if model.is_metadata_lost() { Tap::OFF } else { SOME };
    let (mounted, images) = mount_tapped(bench, flash, model.clone(), tap)?;
    for image in images {
        after_cut(bench, image, model.clone())?;
    }
    let Some(mut line) = mounted else {
        record.tally.refused += 1;
        return Ok(());
    };
    if !line.model.is_metadata_lost() {
        read_all(&mut line)?;
        // What the first mount erased may have been all that told a worn page from a torn one.
        bench.save(&mut *line.ftl)?;
        let flash = line.device.get().flash().snapshot();
        let Some(again) = mount(bench, flash, line)? else {
            record.tally.refused += 1;
            return Ok(());
        };
        line = again;
    }
    let outcome = read_all(&mut line)
        .and_then(|()| write_others(&mut line, worn.ppn, harmed))
        .and_then(|()| accepts_writes(&mut line));
    record.tally += line.model.take_tally();
    outcome?;
    if line.model.is_metadata_lost() {
        return Ok(());
    }
    line.check()?;
    bench.save(&mut *line.ftl)?;
    let flash = line.device.get().flash().snapshot();
    match mount(bench, flash, line)? {
        Some(mut line) => read_all(&mut line),
        None => Ok(()),
    }
}

/// `None` if the mount was refused as it may be.
pub(super) fn mount(bench: &Bench<'_>, flash: Flash, line: Line) -> Result<Option<Line>, String> {
    mount_tapped(bench, flash, line.model, Tap::OFF).map(|(line, _)| line)
}

/// Some operations of a mount, by chance, and one outcome of each.
const SOME: Tap = Tap { at: At::Chance(40), outcomes: Outcomes::Rolled, reads: 0 };

/// The same, with an image of every cut of the mount that is wanted.
fn mount_tapped(
    bench: &Bench<'_>,
    flash: Flash,
    mut model: Model,
    tap: Tap,
) -> Result<(Option<Line>, Vec<Image>), String> {
    let device = bench.device(flash);
    model.cut();
    device.get().begin(tap, bench.case.seed, LIMIT);
    let mounted = (bench.mount)(device.flash_of_bytes(), &bench.config);
    device.get().tap(Tap::OFF);
    let images = device.get().take_images();
    match mounted {
        Ok((ftl, _)) => Ok((Some(Line::new(device, ftl, model)), images)),
        Err(error) if model.may_fail(&error) => Ok((None, images)),
        Err(error) => Err(format!("mounting: {error}")),
    }
}

/// A mount was cut short: the next one finds no less. Cuts that take other pages with them are left
/// out.
fn after_cut(bench: &Bench<'_>, image: Image, mut model: Model) -> Result<(), String> {
    let Image { flash, cut, casualties, .. } = image;
    if casualties.metadata || !casualties.pages.is_empty() {
        return Ok(());
    }
    casualties.fading.iter().for_each(|lpn| model.fade(*lpn));
    let found = mount_tapped(bench, flash, model, Tap::OFF)
        .and_then(|(line, _)| line.map_or(Ok(()), |mut line| read_all(&mut line)));
    found.map_err(|what| {
        format!("{what}, after a mount that was cut at operation {} ({})", cut.at, outcome_name(cut.outcome))
    })
}

/// Erases of a block after which its pages have been others', and those were collected too.
const ERASES: u32 = 2;

/// Writes all pages but one, until the block of the harmed page was collected and used again, or
/// the device was written over and over: nothing of that one may come to light as another's.
fn write_others(line: &mut Line, ppn: u32, except: Option<u32>) -> Result<(), String> {
    let Some(except) = except else { return Ok(()) };
    let pages = line.model.logical_pages();
    let block = line.device.get().geometry().block_of(Ppn(ppn));
    let erases = |line: &Line| line.device.get().flash().inner_mut().erase_count(block);
    let enough = erases(line) + ERASES;
    let mut rng = Rng::new(except.into(), 0x3071);
    for _ in 0..4 {
        // By chance, or other blocks would always have less to move.
        for lpn in (0..2 * pages).map(|_| rng.below(pages)).filter(|lpn| *lpn != except) {
            apply(line, Step::Write { lpn, count: 1 })?;
            if erases(line) >= enough {
                return read_all(line);
            }
        }
        read_all(line)?;
    }
    Ok(())
}

/// Every page can be written and read, twice over.
pub(super) fn accepts_writes(line: &mut Line) -> Result<(), String> {
    for _ in 0..2 {
        let count = line.model.logical_pages();
        apply(line, Step::Write { lpn: 0, count })?;
        apply(line, Step::Flush)?;
        read_all(line)?;
    }
    Ok(())
}
