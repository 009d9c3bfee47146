//! One device that loses power again and again, in writing, in saving and in mounting, and never
//! grows less able.
//!
//! What is done changes from round to round. After some mounts every page is read; after others few
//! are, so that what is in doubt stays so over several cuts. Now and then the data of a page wears
//! out: its logical page may be an error from then on, after any number of mounts, and no other.

use super::worn::{apply, read_all};
use crate::bench::Bench;
use crate::explorer::{Line, ram_bytes};
use crate::model::Model;
use crate::other::Record;
use crate::rng::{Rng, mix};
use crate::shape::LIMIT;
use crate::stamps::Stamps;
use crate::tap::Tap;
use crate::workload::{Step, generate};
use crate::{Device, Shared};
use ftl::{Ftl, FtlError};
use nand::{Blemish, Cut, CutOutcome, Lpn, Nand, NandError, PageKind, Ppn, Spare, Stamp};
use table::AnyBytes;

/// Mounts that may be cut short in a row: each opens a block or two, so that many show whether they
/// are given back.
const INTERRUPTED_MOUNTS: u32 = 40;

/// Operations within which power is cut; the larger ones only if reads are among them.
const SOON: [u32; 5] = [12, 60, 300, 1200, 5000];

/// Steps of a round; power is cut before they end, most of the time.
const STEPS: u32 = 120;

/// A page wears after one mount in so many.
const WEARS: u32 = 8;

/// Steps that are asked for when power is gone already.
const LATE: u32 = 4;

pub(super) fn run(bench: &Bench<'_>, rounds: u32, record: &mut Record) -> Result<(), String> {
    let [mut rng, mut wear] = [0xE4D, 0x3EA4].map(|stream| Rng::new(bench.case.seed, stream));
    let (Line { device, mut ftl, mut model, .. }, mut worn) = (bench.format()?, false);
    let ram_bound = 2 * ram_bytes(&*ftl) + 4096;
    record.fault = "a thousand cuts on one device";
    for round in 0..rounds {
        let told = |what: String| format!("round {round}: {what}");
        plug(&device, &mut rng);
        let steps = steps(bench, round, &mut rng);
        write_until_cut(&device, &mut *ftl, &mut model, &steps).map_err(told)?;
        if bench.case.is_harsh() && bench.has_battery() && !device.get().flash().is_powered() {
            model.cut();
            // A host that has not heard of it yet. Without a battery nothing remembers that it
            // asked.
            for step in generate(mix(bench.case.seed, u64::from(round) << 32), LATE, bench.case.logical_pages) {
                write_until_cut(&device, &mut *ftl, &mut model, &[step]).map_err(told)?;
            }
        }
        power_up(&device);
        model.cut();
        if bench.has_battery() {
            save(bench, &device, &mut *ftl, &mut model, &mut rng).map_err(told)?;
        }
        drop(ftl);
        let many = rng.one_in(16);
        let mut interrupted = rng.below(if many { INTERRUPTED_MOUNTS } else { 3 });
        ftl = loop {
            model.cut();
            power_up(&device);
            if interrupted > 0 {
                plug(&device, &mut rng);
            }
            device.get().begin(Tap::OFF, 0, LIMIT);
            match (bench.mount)(device.flash_of_bytes(), &bench.config) {
                Ok((ftl, _)) => break ftl,
                Err(FtlError::Nand(NandError::PowerLost)) if !device.get().is_exhausted() => {
                    interrupted = interrupted.saturating_sub(1);
                }
                Err(_) if worn && !bench.entry.info.outlives_worn_pages => {
                    record.tally.refused += 1;
                    return Ok(());
                }
                Err(error) => return Err(told(format!("mounting: {error}"))),
            }
        };
        device.get().flash().plan_mut().cuts.clear();
        let ram = ram_bytes(&*ftl);
        if ram > ram_bound {
            return Err(told(format!("{ram} B of RAM after a mount, at most {ram_bound} B are right")));
        }
        let mut line = Line::new(Shared::clone(&device), ftl, model);
        let looked = if !bench.case.is_harsh() || rng.one_in(2) {
            read_all(&mut line).and_then(|()| line.check())
        } else {
            (0..rng.below(4))
                .try_for_each(|_| apply(&mut line, Step::Read { lpn: rng.below(bench.case.logical_pages) }))
        };
        looked.map_err(told)?;
        record.tally += line.model.take_tally();
        Line { ftl, model, .. } = line;
        if bench.case.is_harsh() && wear.one_in(WEARS) {
            worn |= wear_a_page(&device, &mut model, &mut wear);
        }
        if model.is_nearly_used_up() {
            break;
        }
    }
    Ok(())
}

/// Makes the data of a page unreadable that holds the present version of a logical page and was
/// programmed a while ago; `false` if there is none.
fn wear_a_page(device: &Device, model: &mut Model, rng: &mut Rng) -> bool {
    let mut device = device.get();
    let flash = device.flash();
    let geometry = *flash.geometry();
    let nand = flash.inner_mut();
    let spares = (0..geometry.pages()).map(|ppn| nand.read_spare(Ppn(ppn)).ok().flatten());
    let spares: Vec<Option<Spare>> = spares.collect();
    let newest = spares.iter().flatten().map(|spare| spare.seq).max().unwrap_or(0);
    let is_old = |spare: &Spare| spare.seq + 2 * u64::from(geometry.pages_per_block()) < newest;
    let first = rng.below(geometry.pages());
    for ppn in (0..geometry.pages()).map(|i| Ppn((first + i) % geometry.pages())) {
        let of_host = spares[ppn.index()].filter(|spare| spare.kind == PageKind::User && is_old(spare));
        let mut stamp = Stamp::UNWRITTEN;
        let holds = of_host.is_some() && flash.inner_mut().read(ppn, &mut stamp).is_ok() && model.is_current(stamp);
        if holds && flash.blemish(ppn).is_none() {
            flash.damage(ppn, Blemish::DataUnreadable);
            model.harm(stamp.lpn.0);
            return true;
        }
    }
    false
}

/// What is done in a round.
fn steps(bench: &Bench<'_>, round: u32, rng: &mut Rng) -> Vec<Step> {
    let pages = bench.case.logical_pages;
    if bench.case.is_harsh() {
        return generate(mix(bench.case.seed, round.into()), STEPS, pages);
    }
    let (first, stride) = (rng.below(pages), 1 + bench.case.seed as u32 % 5);
    (0..4 * pages).map(|i| Step::Write { lpn: (first + i * stride) % pages, count: 1 }).collect()
}

/// Has power cut soon.
fn plug(device: &Device, rng: &mut Rng) {
    let mut device = device.get();
    let harsh = device.flash().plan().odd_failures;
    let within = if harsh { SOON[rng.below(SOON.len() as u32) as usize] } else { SOON[rng.below(2) as usize] };
    let at = device.flash().ops() + u64::from(rng.below(within));
    // A pair of pages has a scenario of its own.
    let outcome = loop {
        let outcome = CutOutcome::ALL[rng.below(CutOutcome::ALL.len() as u32) as usize];
        if outcome != CutOutcome::PartnerLost && (harsh || CutOutcome::PLAIN.contains(&outcome)) {
            break outcome;
        }
    };
    device.flash().plan_mut().cuts = vec![Cut { at, outcome }];
}

fn power_up(device: &Device) {
    let mut device = device.get();
    device.flash().plan_mut().cuts.clear();
    device.flash().power_up();
    device.begin(Tap::OFF, 0, LIMIT);
}

/// Saves while a battery lasts, which now and then it does not.
fn save(
    bench: &Bench<'_>,
    device: &Device,
    ftl: &mut dyn Ftl<AnyBytes>,
    model: &mut Model,
    rng: &mut Rng,
) -> Result<(), String> {
    if !bench.case.is_harsh() || !rng.one_in(8) {
        return bench.save(ftl);
    }
    plug(device, rng);
    match ftl.power_failing() {
        Ok(()) => {}
        Err(FtlError::Nand(NandError::PowerLost)) => model.battery_died(),
        Err(error) => return Err(format!("saving until the battery dies: {error}")),
    }
    Ok(())
}

/// Does steps until power is cut.
fn write_until_cut(
    device: &Device,
    ftl: &mut dyn Ftl<AnyBytes>,
    model: &mut Model,
    steps: &[Step],
) -> Result<(), String> {
    for step in steps {
        let outcome = match *step {
            Step::Write { lpn, count } => write(ftl, model, lpn, count),
            Step::Trim { lpn, count } => {
                let count = count.min(model.logical_pages() - lpn);
                model.begin_trim(lpn, count);
                ftl.trim(Lpn(lpn), count).map(|()| model.complete_trim(lpn, count))
            }
            Step::Read { lpn } => match ftl.read_stamp(Lpn(lpn)) {
                Err(FtlError::Nand(NandError::PowerLost)) => Err(NandError::PowerLost.into()),
                got => model.read(lpn, got).map(drop).map_err(|what| format!("before the cut: {what}")).map(Ok)?,
            },
            Step::Flush => ftl.flush().map(|()| model.complete_flush()),
            Step::Idle => ftl.idle().map(drop),
        };
        match outcome {
            Ok(()) => {}
            Err(FtlError::Nand(NandError::PowerLost)) if !device.get().is_exhausted() => return Ok(()),
            Err(error) => return Err(format!("{step}: {error}")),
        }
    }
    Ok(())
}

fn write(ftl: &mut dyn Ftl<AnyBytes>, model: &mut Model, first: u32, count: u32) -> Result<(), FtlError> {
    let pages = model.logical_pages();
    for lpn in (0..count.min(pages)).map(|i| (first + i) % pages) {
        let stamp: Stamp = model.begin_write(lpn);
        ftl.write_stamp(Lpn(lpn), stamp)?;
        model.complete_write(lpn);
    }
    Ok(())
}
