//! One device that loses power again and again, in writing and in mounting, and never grows less able.

use super::worn::read_all;
use crate::explorer::{Bench, Line, ram_bytes};
use crate::model::Model;
use crate::rng::Rng;
use crate::shape::LIMIT;
use crate::tap::Tap;
use crate::{Device, Shared};
use ftl::{Flash, Ftl, FtlError};
use nand::{Cut, CutOutcome, Lpn, NandError, Stamp};

/// Mounts that may be cut short in a row: each opens a block or two, so that many show whether they are given back.
const INTERRUPTED_MOUNTS: u32 = 40;

pub(super) fn run(bench: &Bench<'_>, rounds: u32) -> Result<(), String> {
    let mut rng = Rng::new(bench.case.seed, 0xE4D);
    let Line { device, mut ftl, mut model, .. } = bench.format()?;
    let ram_bound = 2 * ram_bytes(&*ftl) + 4096;
    for round in 0..rounds {
        plug(&device, &mut rng, 60);
        let step = rng.below(bench.steps.len().max(1) as u32) as usize;
        write_until_cut(bench, &device, &mut *ftl, &mut model, step)
            .and_then(|()| {
                device.get_mut().flash().power_up();
                device.get_mut().flash().plan_mut().cuts.clear();
                bench.save(&mut *ftl)
            })
            .map_err(|what| format!("round {round}: {what}"))?;
        drop(ftl);
        let many = rng.one_in(16);
        let mut interrupted = rng.below(if many { INTERRUPTED_MOUNTS } else { 3 });
        ftl = loop {
            model.cut();
            device.get_mut().flash().power_up();
            device.get_mut().flash().plan_mut().cuts.clear();
            if interrupted > 0 {
                plug(&device, &mut rng, 8);
            }
            device.get_mut().begin(Tap::OFF, 0, LIMIT);
            match (bench.mount)(Flash::new(device.clone()), &bench.config) {
                Ok((ftl, _)) => break ftl,
                Err(FtlError::Nand(NandError::PowerLost)) if !device.get().is_exhausted() => {
                    interrupted = interrupted.saturating_sub(1);
                }
                Err(error) => return Err(format!("round {round}: mounting: {error}")),
            }
        };
        device.get_mut().flash().plan_mut().cuts.clear();
        let ram = ram_bytes(&*ftl);
        if ram > ram_bound {
            return Err(format!("round {round}: {ram} B of RAM after a mount, at most {ram_bound} B are right"));
        }
        let mut line = Line::new(Shared::clone(&device), ftl, model);
        read_all(&mut line).and_then(|()| line.ftl.check()).map_err(|what| format!("round {round}: {what}"))?;
        Line { ftl, model, .. } = line;
        if model.is_nearly_used_up() {
            break;
        }
    }
    Ok(())
}

/// Has power cut within the next operations.
fn plug(device: &Device, rng: &mut Rng, within: u32) {
    let mut device = device.get_mut();
    let at = device.flash().ops() + u64::from(rng.below(within));
    let outcome = CutOutcome::ALL[rng.below(CutOutcome::ALL.len() as u32) as usize];
    device.flash().plan_mut().cuts = vec![Cut { at, outcome }];
}

fn write_until_cut(
    bench: &Bench<'_>,
    device: &Device,
    ftl: &mut dyn Ftl<Device>,
    model: &mut Model,
    first: usize,
) -> Result<(), String> {
    let pages = model.logical_pages();
    device.get_mut().begin(Tap::OFF, 0, LIMIT);
    for lpn in (0..4 * pages).map(|i| (first as u32 * 7 + i * (1 + bench.case.seed as u32 % 5)) % pages) {
        let stamp: Stamp = model.begin_write(lpn);
        match ftl.write(Lpn(lpn), &stamp) {
            Ok(()) => model.complete_write(lpn),
            Err(FtlError::Nand(NandError::PowerLost)) if !device.get().is_exhausted() => return Ok(()),
            Err(error) => return Err(format!("writing: {error}")),
        }
    }
    Ok(())
}
