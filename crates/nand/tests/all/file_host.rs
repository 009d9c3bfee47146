//! A host that dies or fails: the device is as some operation left it, none from before the last
//! sync missing.
#![cfg(all(feature = "std", unix))]
#![allow(clippy::unwrap_used)]

use crate::common::*;
use openftl_nand::file::Volatile;
use openftl_nand::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Program(u32, u16),
    Meta(u32, u8),
    Copy(u32, u32),
    Erase(u32),
    Mark(u32),
    Flag(u32, u8),
    Sync,
    Reopen,
}

/// Whether the step changed the device.
fn apply<N: Nand<Payload = [u8]>>(n: &mut N, step: &Step, seq: u64) -> bool {
    let done = match *step {
        Step::Program(ppn, version) => put(n, ppn, stamp(ppn, version), &spare(ppn, seq)),
        Step::Meta(ppn, length) => n.program_meta(Ppn(ppn), &vec![length; length as usize], &spare(ppn, seq)),
        Step::Copy(from, to) => n.copy(Ppn(from), Ppn(to), &spare(from, seq)),
        Step::Erase(block) => n.erase(BlockId(block)),
        Step::Mark(block) => n.mark_bad(BlockId(block)),
        Step::Flag(ppn, bits) => n.clear_flags(Ppn(ppn), Flags::from_bits(bits)),
        Step::Sync | Step::Reopen => return false,
    };
    done.is_ok()
}

/// All that can be seen of a device: pages, bad blocks, erase counts.
type Seen = (Vec<Result<(Vec<u8>, Spare), NandError>>, Vec<bool>, Vec<u32>);

fn seen<N: Nand<Payload = [u8]>>(n: &mut N, erases: Vec<u32>) -> Seen {
    let pages = (0..48).map(|ppn| {
        let mut data = vec![0; PAGE];
        let spare = match n.read(Ppn(ppn), &mut data) {
            Err(NandError::Illegal { .. }) => n.read_meta(Ppn(ppn), &mut data),
            other => other,
        };
        spare.map(|spare| (data, spare))
    });
    let pages = pages.collect();
    (pages, (0..6).map(|block| n.is_bad(BlockId(block))).collect(), erases)
}

fn steps() -> impl Strategy<Value = Step> {
    let page = || 0..24_u32;
    prop_oneof![
        10 => (page(), any::<u16>()).prop_map(|(p, v)| Step::Program(p, v)),
        4 => (page(), any::<u8>()).prop_map(|(p, n)| Step::Meta(p, n)),
        5 => (page(), page()).prop_map(|(from, to)| Step::Copy(from, to)),
        6 => (0..3_u32).prop_map(Step::Erase),
        1 => (2..6_u32).prop_map(Step::Mark),
        5 => (page(), any::<u8>()).prop_map(|(p, f)| Step::Flag(p, f)),
        1 => Just(Step::Sync),
        1 => Just(Step::Reopen),
    ]
}

/// A small generator, so that the fate of each sector follows from the seed.
fn pick(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 33) as usize) % below
}

/// The device after the host died, or after it died again while that was being undone.
fn after_power_loss(disk: &Volatile, seed: &mut u64) -> FileNand<Volatile> {
    let disk = disk.after_power_loss(|below| pick(seed, below));
    let first = FileNand::open_on(disk.clone(), Access::ReadWrite).unwrap();
    if pick(seed, 3) > 0 {
        return first;
    }
    let again = first.medium().after_power_loss(|below| pick(seed, below));
    FileNand::open_on(again, Access::ReadWrite).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_dead_host_leaves_what_some_operation_left(steps in prop::collection::vec(steps(), 1..120), seed in any::<u64>()) {
        let mut seed = seed;
        let mut mem = MemNand::new(geometry(), OLD);
        let mut file = file_in_memory(OLD);
        // What was seen after each operation since the last sync.
        let mut history = vec![seen(&mut mem, vec![0; 6])];
        for (seq, step) in (1..).zip(&steps) {
            let changed = apply(&mut mem, step, seq);
            prop_assert_eq!(apply(&mut file, step, seq), changed, "{:?}", step);
            let erases = mem.erase_counts().collect();
            let now = seen(&mut mem, erases);
            match step {
                Step::Sync => {
                    file.sync().unwrap();
                    history.clear();
                }
                Step::Reopen => {
                    let opened = after_power_loss(file.medium(), &mut seed);
                    file = opened;
                    let erases = file.erase_counts().collect();
                    let found = seen(&mut file, erases);
                    let at = history.iter().rposition(|earlier| *earlier == found);
                    prop_assert!(at.is_some(), "the device is as no operation left it");
                    // From here on both are what was found.
                    if at != Some(history.len() - 1) {
                        return Ok(());
                    }
                    history.clear();
                }
                _ => {}
            }
            if changed || history.is_empty() {
                history.push(now);
            }
        }
        let mut last = after_power_loss(file.medium(), &mut seed);
        let erases = last.erase_counts().collect();
        let found = seen(&mut last, erases);
        prop_assert!(history.contains(&found), "the device is as no operation left it");
        // Nothing that was undone comes back, and new operations are not taken for old ones.
        let block = (0..6).find(|block| !last.is_bad(BlockId(*block)));
        if let Some(block) = block {
            last.erase(BlockId(block)).unwrap();
            fill(&mut last, block * 8 + 2).unwrap();
            let mut again = FileNand::open_on(last.medium().clone(), Access::ReadWrite).unwrap();
            prop_assert_eq!(again.opening().undone, 0);
            prop_assert_eq!(get(&mut again, block * 8 + 2).unwrap().0, stamp(block * 8 + 2, (block * 8 + 2) as u16));
            for page in (0..48).filter(|page| page / 8 != block) {
                prop_assert_eq!(again.read_spare(Ppn(page)), last.read_spare(Ppn(page)));
            }
        }
    }

    #[test]
    fn a_full_disk_stops_writes_and_loses_nothing(steps in prop::collection::vec(steps(), 1..60), room in 0..40_u64) {
        let mut mem = MemNand::new(geometry(), OLD);
        let mut file = file_in_memory(OLD);
        file.medium_mut().fill_after(Some(room));
        let mut failed = false;
        for (seq, step) in (1..).zip(&steps) {
            if apply(&mut file, step, seq) {
                let nothing = matches!(step, Step::Mark(block) if mem.is_bad(BlockId(*block)));
                prop_assert!(!failed || nothing, "{step:?} was done after the host had failed");
                prop_assert!(apply(&mut mem, step, seq));
            }
            failed = file.sync().is_err();
        }
        let (wanted, found) = (mem.erase_counts().collect(), file.erase_counts().collect());
        prop_assert_eq!(seen(&mut file, found), seen(&mut mem, wanted), "before it is opened again");
        if failed {
            let refused = file.erase(BlockId(0));
            prop_assert!(matches!(refused, Err(NandError::Host { .. } | NandError::Illegal { .. })), "{:?}", refused);
        }
        file.medium_mut().fill_after(None);
        let mut again = FileNand::open_on(file.medium().clone(), Access::ReadWrite).unwrap();
        let (wanted, found) = (mem.erase_counts().collect(), again.erase_counts().collect());
        prop_assert_eq!(seen(&mut again, found), seen(&mut mem, wanted), "after it was opened again");
    }
}

#[test]
fn after_a_failed_sync_nothing_is_written_or_called_synced() {
    let mut n = file_in_memory(OLD);
    fill(&mut n, 0).unwrap();
    n.medium_mut().fail_syncs(true);
    assert!(n.sync().is_err());
    n.medium_mut().fail_syncs(false);
    assert!(n.sync().is_err(), "the host may have forgotten what it could not write");
    assert!(matches!(fill(&mut n, 1), Err(NandError::Host { cause: HostError(5), .. })));
    assert!(matches!(n.erase(BlockId(0)), Err(NandError::Host { .. })));
    assert_eq!(get(&mut n, 0).unwrap().0, stamp(0, 0), "reads go on");
    assert!(n.close().is_err());
}

/// A block may be erased and another programmed without a sync; what was erased is not programmed
/// over before the erase is on disk.
#[test]
fn erases_are_synced_when_it_matters() {
    let mut n = file_in_memory(Capabilities::MODERN);
    for page in 0..40 {
        fill(&mut n, page).unwrap();
    }
    let before = n.medium().syncs();
    for block in 0..5 {
        n.erase(BlockId(block)).unwrap();
    }
    fill(&mut n, 40).unwrap();
    assert_eq!(n.medium().syncs(), before);
    fill(&mut n, 0).unwrap();
    assert_eq!(n.medium().syncs(), before + 2, "once before the anchor and once after it");
    for page in [8, 16, 24, 32, 1, 2] {
        fill(&mut n, page).unwrap();
    }
    assert_eq!(n.medium().syncs(), before + 2, "one anchor does for all erases before it");
}

/// There is an anchor now and then even if nothing is erased, so that opening looks at a bounded
/// number of pages.
#[test]
fn operations_without_an_anchor_are_bounded() {
    let shape = Dimensions { blocks: 300, pages_per_block: 256, ..SHAPE };
    let geometry = Geometry::new(shape).unwrap();
    let bytes = FileNand::<Volatile>::bytes_needed(&geometry, 0) as usize;
    let mut n = FileNand::create_on(Volatile::new(vec![0; bytes]), geometry, OLD, b"").unwrap();
    let before = n.medium().syncs();
    for page in 0..65_536 {
        n.program_meta(Ppn(page), &[1], &spare(page, 1)).unwrap();
    }
    assert_eq!(n.medium().syncs(), before);
    n.program_meta(Ppn(65_536), &[1], &spare(0, 1)).unwrap();
    assert_eq!(n.medium().syncs(), before + 2);
    let mut again = FileNand::open_on(n.medium().clone(), Access::ReadWrite).unwrap();
    assert_eq!(again.opening().undone, 0);
    assert!((0..=65_536).all(|page| again.read_spare(Ppn(page)).unwrap().is_some()));
}
