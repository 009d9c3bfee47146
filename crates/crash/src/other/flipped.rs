//! Checkpoint pages with wrong bits that no ECC noticed: their spare areas are intact, their bytes
//! are not.
//!
//! The disk is as if the checkpoint were not there: every page reads as acknowledged, at once and
//! after the next mount. That is promised of [`PageKind::Checkpoint`] alone, under every FTL that
//! programs such pages: those with log blocks, and those of which a battery saves the state.
//! Translation pages and pages of validity stores carry no check value.

use super::images::copy_block_changed;
use super::worn::{accepts_writes, apply, mount, read_all};
use crate::bench::Bench;
use crate::explorer::Line;
use crate::other::Record;
use crate::rng::Rng;
use crate::workload::Step;
use ftl::{Purpose, Setting};
use nand::{Faulty, Nand, PageKind, Ppn, SimNand, Snapshot};

/// Workloads after which an FTL that has not made a checkpoint makes none.
const ROUNDS: u32 = 64;

/// Bytes of a page among which one wrong bit in four lies: counts and addresses that decide how the
/// rest is read.
const HEAD: u32 = 48;

pub(super) fn run(bench: &Bench<'_>, n: u32, record: &mut Record) -> Result<(), String> {
    record.fault = "wrong bits in a checkpoint";
    if !bench.has_battery() && !bench.entry.info.honours(Setting::Maps) {
        return Ok(());
    }
    let mut rng = Rng::new(bench.case.seed, u64::from(n) << 16 | 0xF11);
    let mut line = work(bench, &mut rng)?;
    bench.save(&mut *line.ftl)?;
    let flash = flip(line.device.get().flash(), &mut rng);
    // What was lost with a checkpoint is at most what was trimmed.
    line.model.harm_trims();
    let mut line = mount(bench, flash, line)?.ok_or("the mount was refused")?;
    read_all(&mut line)?;
    record.tally += line.model.take_tally();
    line.check()?;
    accepts_writes(&mut line)?;
    line.check()?;
    bench.save(&mut *line.ftl)?;
    let flash = line.device.get().flash().snapshot();
    read_all(&mut mount(bench, flash, line)?.ok_or("the second mount was refused")?)
}

/// Does the workload until there are checkpoints, then once to four times more.
fn work(bench: &Bench<'_>, rng: &mut Rng) -> Result<Line, String> {
    let mut line = bench.format()?;
    let mut left = 1 + rng.below(4);
    for _ in 0..ROUNDS {
        bench.steps.iter().try_for_each(|step| apply(&mut line, *step))?;
        let made = bench.has_battery() || line.ftl.flash().counts().of(Purpose::Checkpoint).programs > 0;
        left -= u32::from(made);
        if left == 0 || line.model.is_nearly_used_up() {
            break;
        }
    }
    apply(&mut line, Step::Flush)?;
    Ok(line)
}

/// The device with wrong bits in one of its checkpoint pages, or in some.
fn flip(flash: &mut Faulty<SimNand>, rng: &mut Rng) -> Faulty<SimNand> {
    let mut out = flash.snapshot();
    let geometry = *flash.geometry();
    let is_checkpoint =
        |ppn: &Ppn| matches!(out.inner_mut().read_spare(*ppn), Ok(Some(spare)) if spare.kind == PageKind::Checkpoint);
    let mut wrong: Vec<Ppn> = (0..geometry.pages()).map(Ppn).filter(is_checkpoint).collect();
    if rng.one_in(4) {
        wrong.retain(|_| rng.one_in(2));
    } else if !wrong.is_empty() {
        wrong = vec![wrong[rng.below(wrong.len() as u32) as usize]];
    }
    let mut blocks: Vec<_> = wrong.iter().map(|ppn| geometry.block_of(*ppn)).collect();
    blocks.dedup();
    for block in blocks {
        // The device below the faults erases whatever is not bad.
        let _ = out.inner_mut().erase(block);
        copy_block_changed(
            flash,
            block,
            &mut out,
            block,
            |_| {},
            |ppn, bytes| {
                if wrong.contains(&ppn) {
                    (0..1 + rng.below(3)).for_each(|_| flip_bit(bytes, rng));
                }
            },
        );
    }
    out
}

/// Flips a bit among the bytes that were programmed, or right behind them.
fn flip_bit(bytes: &mut [u8], rng: &mut Rng) {
    let used = bytes.iter().rposition(|byte| *byte != 0xFF).map_or(1, |last| last + 2).min(bytes.len()) as u32;
    let among = if rng.one_in(4) { used.min(HEAD) } else { used };
    let bit = rng.below(8 * among);
    bytes[bit as usize / 8] ^= 1 << (bit % 8);
}
