//! Devices that hold what this FTL did not leave there. A mount answers with an error or with a
//! consistent disk.

use super::worn::{accepts_writes, read_all, work};
use crate::bench::Bench;
use crate::explorer::Line;
use crate::model::Model;
use crate::other::Record;
use crate::rng::Rng;
use crate::stamps::Stamps;
use crate::workload::Step;
use ftl::ftls::Entry;
use ftl::{Config, Ftl, Setting};
use nand::{
    Blemish, BlockId, Faulty, Flags, Geometry, Lpn, Nand, NandError, PageKind, Ppn, SimNand, Snapshot, Spare, Stamp,
};
use table::AnyBytes;

/// What the device holds.
#[derive(Clone, Copy)]
enum Content {
    /// Pages of any kind with random tags and contents.
    Random,
    /// Blocks from some block on are erased.
    Truncated,
    /// What another FTL wrote.
    Foreign,
    /// Some blocks as they were earlier.
    Stale,
    /// A disk of another size.
    OtherSize,
    /// Spare areas that lie, with the right check value.
    Lying,
    /// Blocks in another order.
    Shuffled,
}

const CONTENTS: [Content; 7] = [
    Content::Random,
    Content::Truncated,
    Content::Foreign,
    Content::Stale,
    Content::OtherSize,
    Content::Lying,
    Content::Shuffled,
];

pub(super) fn run(bench: &Bench<'_>, n: u32, record: &mut Record) -> Result<(), String> {
    record.fault = "foreign or damaged image";
    let mut rng = Rng::new(bench.case.seed, u64::from(n));
    let content = CONTENTS[n as usize % CONTENTS.len()];
    let flash = fill(bench, content, &mut rng)?;
    let device = bench.device(flash);
    let config = match content {
        Content::OtherSize => {
            let logical_pages = (1 + rng.below(2 * bench.config.logical_pages)).max(1);
            Config { logical_pages, ..bench.config }
        }
        _ => bench.config,
    };
    let Ok((mut ftl, report)) = (bench.mount)(device.flash_of_bytes(), &config) else {
        record.tally.refused += 1;
        return if device.get().is_exhausted() { Err("mounting does not end".into()) } else { Ok(()) };
    };
    if report.read_only.is_some() {
        // As good as an error: whatever is there, or an error.
        (0..config.logical_pages).for_each(|lpn| drop(ftl.read_stamp(Lpn(lpn))));
        return Ok(());
    }
    judge(bench, config, Line::new(device, ftl, Model::new(bench.durable(), config.logical_pages)))
}

/// A disk was made of it: it can be read, takes writes, is consistent then, and is found again. Not
/// before it was written anew: until then the map may name pages that faded since the mount.
fn judge(bench: &Bench<'_>, config: Config, mut line: Line) -> Result<(), String> {
    for lpn in (0..config.logical_pages).map(Lpn) {
        // Whatever is there, or an error.
        let _ = line.ftl.read_stamp(lpn);
    }
    let info = &bench.entry.info;
    if info.honours(Setting::CacheEntries) || !info.outlives_worn_pages || bench.config.validity.is_some() {
        // Its mount does not read enough to see that an image contradicts itself: not to fall over
        // is all it promises.
        for lpn in (0..config.logical_pages).map(Lpn) {
            let _ = line.ftl.write_stamp(lpn, Stamp { lpn, version: 1 });
        }
        return Ok(());
    }
    accepts_writes(&mut line)?;
    line.check()?;
    let Line { device, ftl, mut model, .. } = line;
    drop(ftl);
    model.cut();
    let mounted = (bench.mount)(device.flash_of_bytes(), &config);
    let (ftl, _): (Box<dyn Ftl<AnyBytes>>, _) = mounted.map_err(|error| format!("mounting again: {error}"))?;
    read_all(&mut Line::new(device, ftl, model))
}

fn fill(bench: &Bench<'_>, content: Content, rng: &mut Rng) -> Result<Faulty<SimNand>, String> {
    let mut old = bench.format()?;
    let geometry = *old.device.geometry();
    let blocks = geometry.blocks();
    let mut out = old.device.get().flash().snapshot();
    (0..blocks).for_each(|block| erase(&mut out, BlockId(block)));
    match content {
        Content::Random => random(&mut out, rng),
        Content::Foreign => {
            let others: Vec<Entry<AnyBytes>> =
                table::table().into_iter().filter(|e: &Entry<AnyBytes>| e.info.name != bench.entry.info.name).collect();
            let other = &others[rng.below(others.len() as u32) as usize];
            return Ok(foreign(bench, other)?.unwrap_or(out));
        }
        Content::Stale => {
            let half = bench.steps.len() / 2;
            for step in &bench.steps[..half] {
                super::worn::apply(&mut old, *step)?;
            }
            let mut before = old.device.get().flash().snapshot();
            for step in &bench.steps[half..] {
                super::worn::apply(&mut old, *step)?;
            }
            let mut after = old.device.get().flash().snapshot();
            let share = 2 + rng.below(16);
            for block in (0..blocks).map(BlockId) {
                let from = if rng.one_in(share) { &mut before } else { &mut after };
                copy_block(from, block, &mut out, block, |_| {});
            }
        }
        Content::Truncated | Content::OtherSize | Content::Lying | Content::Shuffled => {
            let mut line = work(bench)?;
            bench.save(&mut *line.ftl)?;
            let mut from = line.device.get().flash().snapshot();
            let end = if matches!(content, Content::Truncated) { rng.below(blocks) } else { blocks };
            let turn = if matches!(content, Content::Shuffled) { rng.below(blocks) } else { 0 };
            let lies = if matches!(content, Content::Lying) { 1 + rng.below(64) } else { 0 };
            for block in 0..end {
                let to = BlockId((block + turn) % blocks);
                copy_block(&mut from, BlockId(block), &mut out, to, |spare| {
                    if lies > 0 && rng.one_in(lies) {
                        lie(spare, rng);
                    }
                });
            }
        }
    }
    if rng.one_in(2) {
        damage(&mut out, &geometry, rng);
    }
    Ok(out)
}

/// What another FTL leaves on such a device after the same workload; `None` if it makes no disk of
/// it.
fn foreign(bench: &Bench<'_>, other: &Entry<AnyBytes>) -> Result<Option<Faulty<SimNand>>, String> {
    let device = bench.case.shape().device(nand::FaultPlan::default()).map_err(|e| e.to_string())?;
    let Ok(mut ftl) = (other.format)(device.flash_of_bytes(), &bench.config) else { return Ok(None) };
    let pages = bench.config.logical_pages;
    for (version, step) in (1..).zip(&bench.steps) {
        if let Step::Write { lpn, .. } = step {
            let lpn = Lpn(lpn % pages);
            if ftl.write_stamp(lpn, Stamp { lpn, version }).is_err() {
                break;
            }
        }
    }
    drop(ftl);
    Ok(Some(device.get().flash().snapshot()))
}

fn erase(flash: &mut Faulty<SimNand>, block: BlockId) {
    if !flash.is_bad(block) {
        // The device below the faults erases whatever is not bad.
        let _ = flash.inner_mut().erase(block);
    }
}

/// Copies what can be copied of a block; pages that the device refuses stay erased.
fn copy_block(
    from: &mut Faulty<SimNand>,
    block: BlockId,
    out: &mut Faulty<SimNand>,
    to: BlockId,
    change: impl FnMut(&mut Spare),
) {
    copy_block_changed(from, block, out, to, change, |_, _| {});
}

/// As [`copy_block`], with other bytes of metadata.
pub(super) fn copy_block_changed(
    from: &mut Faulty<SimNand>,
    block: BlockId,
    out: &mut Faulty<SimNand>,
    to: BlockId,
    mut change: impl FnMut(&mut Spare),
    mut change_bytes: impl FnMut(Ppn, &mut [u8]),
) {
    let geometry = *from.geometry();
    let (from, out) = (from.inner_mut(), out.inner_mut());
    for offset in 0..geometry.pages_per_block() {
        let (source, target) = (geometry.page_at(block, offset), geometry.page_at(to, offset));
        let Ok(Some(mut spare)) = from.read_spare(source) else { continue };
        change(&mut spare);
        let mut stamp = Stamp::UNWRITTEN;
        let programmed = match from.read(source, &mut stamp) {
            Ok(_) => out.program(target, &stamp, &spare),
            Err(NandError::Illegal { .. }) => {
                let mut bytes = vec![0; geometry.page_bytes() as usize];
                from.read_meta(source, &mut bytes).and_then(|_| {
                    change_bytes(source, &mut bytes);
                    out.program_meta(target, &bytes, &spare)
                })
            }
            Err(error) => Err(error),
        };
        if programmed.is_ok() && !spare.flags.is_none() {
            let _ = out.clear_flags(target, spare.flags);
        }
    }
}

fn lie(spare: &mut Spare, rng: &mut Rng) {
    let random = any_spare(rng);
    match rng.below(6) {
        0 => spare.kind = random.kind,
        1 => spare.tag = random.tag,
        2 => spare.seq = random.seq,
        3 => spare.erase_count = random.erase_count,
        4 => spare.erased_at = random.erased_at,
        _ => spare.aux = random.aux,
    }
}

fn any_spare(rng: &mut Rng) -> Spare {
    let size = |rng: &mut Rng, bits: u32| rng.next() >> (64 - 1 - rng.below(bits));
    Spare {
        kind: PageKind::ALL[rng.below(4) as usize],
        tag: size(rng, 32) as u32,
        seq: size(rng, 48),
        erase_count: size(rng, 32) as u32,
        erased_at: size(rng, 32) as u32,
        aux: size(rng, 32) as u32,
        flags: Flags::NONE,
    }
}

fn random(out: &mut Faulty<SimNand>, rng: &mut Rng) {
    let geometry = *out.geometry();
    let sparse = 1 + rng.below(8);
    let tags = 1 + rng.below(400);
    for ppn in (0..geometry.pages()).map(Ppn) {
        if sparse > 1 && rng.one_in(sparse) {
            continue;
        }
        let mut spare = any_spare(rng);
        if !rng.one_in(64) {
            spare.tag %= tags;
        }
        let _ = if spare.kind == PageKind::User {
            out.inner_mut().program(ppn, &Stamp { lpn: Lpn(spare.tag), version: 1 }, &spare)
        } else {
            let bytes: Vec<u8> = (0..rng.below(geometry.page_bytes())).map(|_| rng.next() as u8).collect();
            out.inner_mut().program_meta(ppn, &bytes, &spare)
        };
    }
}

fn damage(out: &mut Faulty<SimNand>, geometry: &Geometry, rng: &mut Rng) {
    let share = 2 + rng.below(64);
    for ppn in (0..geometry.pages()).map(Ppn) {
        if rng.one_in(share) {
            let blemishes = [Blemish::Unreadable, Blemish::DataUnreadable, Blemish::Fading(1), Blemish::Blank];
            out.damage(ppn, blemishes[rng.below(4) as usize]);
        }
    }
}
