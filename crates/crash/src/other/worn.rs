//! A page harmed after the workload, while power is on or before a mount.

use crate::case::Harm;
use crate::explorer::{Bench, Line};
use crate::model::Seen;
use crate::rng::Rng;
use crate::shape::LIMIT;
use crate::tap::Tap;
use crate::workload::Step;
use ftl::Flash;
use nand::{Lpn, Nand, PageKind, Ppn, Snapshot, Stamp};

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
    line.device.get_mut().begin(Tap::OFF, 0, LIMIT);
    match step {
        Step::Write { lpn, count } => {
            for lpn in (0..count.min(pages)).map(|i| (lpn % pages + i) % pages) {
                let stamp = line.model.begin_write(lpn);
                line.ftl.write(Lpn(lpn), &stamp).map_err(|error| format!("writing: {error}"))?;
                line.model.complete_write(lpn);
            }
        }
        Step::Trim { lpn, count } => {
            let (lpn, count) = (lpn % pages, count.min(pages - lpn % pages));
            line.model.begin_trim(lpn, count);
            line.ftl.trim(Lpn(lpn), count).map_err(|error| format!("trimming: {error}"))?;
            line.model.complete_trim(lpn, count);
        }
        Step::Read { lpn } => {
            read(line, lpn % pages)?;
        }
        Step::Flush => {
            line.ftl.flush().map_err(|error| format!("flushing: {error}"))?;
            line.model.complete_flush();
        }
        Step::Idle => {
            line.ftl.idle().map_err(|error| format!("idling: {error}"))?;
        }
    }
    Ok(())
}

fn read(line: &mut Line, lpn: u32) -> Result<Seen, String> {
    let mut stamp = Stamp::UNWRITTEN;
    let got = line.ftl.read(Lpn(lpn), &mut stamp).map(|()| stamp);
    line.model.read(lpn, got)
}

pub(super) fn read_all(line: &mut Line) -> Result<(), String> {
    (0..line.model.logical_pages()).try_for_each(|lpn| apply(line, Step::Read { lpn }))
}

/// Pages that hold something after the workload.
pub(crate) fn pages(bench: &Bench<'_>) -> Result<Vec<u32>, String> {
    let line = work(bench)?;
    let mut device = line.device.get_mut();
    let geometry = *device.geometry();
    let nand = device.flash().inner_mut();
    Ok((0..geometry.pages()).filter(|ppn| matches!(nand.read_spare(Ppn(*ppn)), Ok(Some(_)))).collect())
}

/// Harms a page, also in the eyes of the model; the logical page that suffers, if it is one only. `Err` if nothing is there.
fn harm_page(line: &mut Line, ppn: u32, harm: Harm) -> Result<Option<u32>, Nothing> {
    let mut device = line.device.get_mut();
    let flash = device.flash();
    let Ok(Some(spare)) = flash.inner_mut().read_spare(Ppn(ppn)) else { return Err(Nothing) };
    let blemish = harm.blemish(flash.plan().correctable_bits);
    flash.damage(Ppn(ppn), blemish);
    if harm == Harm::Correctable {
        return Ok(None);
    }
    if spare.kind == PageKind::User {
        line.model.harm(spare.tag);
        return Ok(Some(spare.tag));
    }
    // Only rows that make metadata again get here.
    line.model.harm_trims();
    Ok(None)
}

/// The page to be harmed holds nothing.
struct Nothing;

/// Every page but that of the harmed one reads right, and that one as an error or right, also after its block was collected.
pub(super) fn powered(bench: &Bench<'_>, ppn: u32, harm: Harm) -> Result<(), String> {
    let mut line = work(bench)?;
    let Ok(harmed) = harm_page(&mut line, ppn, harm) else { return Ok(()) };
    read_all(&mut line)?;
    write_others(&mut line, harmed)?;
    accepts_writes(&mut line)
}

/// The same after a mount, where the page may also read as an older version of itself: of a page that cannot be
/// read at all nobody knows whose it was.
pub(super) fn mounted(bench: &Bench<'_>, ppn: u32, harm: Harm) -> Result<(), String> {
    let mut line = work(bench)?;
    bench.save(&mut *line.ftl)?;
    let Ok(harmed) = harm_page(&mut line, ppn, harm) else { return Ok(()) };
    let flash = line.device.get_mut().flash().snapshot();
    let mut line = mount(bench, flash, line)?;
    read_all(&mut line)?;
    write_others(&mut line, harmed)?;
    accepts_writes(&mut line)?;
    line.ftl.check()?;
    bench.save(&mut *line.ftl)?;
    let flash = line.device.get_mut().flash().snapshot();
    let mut line = mount(bench, flash, line)?;
    read_all(&mut line)
}

fn mount(bench: &Bench<'_>, flash: nand::Faulty<nand::SimNand>, line: Line) -> Result<Line, String> {
    let device = crate::Shared::new(crate::tap::Tapped::new(flash, LIMIT));
    let mut model = line.model;
    model.cut();
    let mounted = (bench.mount)(Flash::new(device.clone()), &bench.config);
    let (ftl, _) = mounted.map_err(|error| format!("mounting: {error}"))?;
    Ok(Line::new(device, ftl, model))
}

/// Writes all pages but one until every block was collected: nothing of that one may come to light as another's.
fn write_others(line: &mut Line, except: Option<u32>) -> Result<(), String> {
    let Some(except) = except else { return Ok(()) };
    let pages = line.model.logical_pages();
    let mut rng = Rng::new(except.into(), 0x3071);
    for _ in 0..4 {
        // By chance, or other blocks would always have less to move.
        for lpn in (0..2 * pages).map(|_| rng.below(pages)).filter(|lpn| *lpn != except) {
            apply(line, Step::Write { lpn, count: 1 })?;
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
