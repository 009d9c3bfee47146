//! Lanes on a device of several dies: metadata is spread over them as host data is, and collection
//! makes room where it is short.

#![allow(clippy::unwrap_used)]

use ftl::{Config, Flash};
use nand::geometry::Dimensions;
use nand::{Capabilities, Geometry, Lpn, Nand, PageKind, Ppn, SimNand, Stamp};
use openftl_ftl as ftl;

const DIES: u32 = 4;
const BLOCKS: u32 = 800;
const LOGICAL: u32 = 6000;

/// What a disk looks like that was overwritten at random for long.
struct Played {
    /// Pages of host data on each die.
    host: [u32; DIES as usize],
    /// Erases of each die's blocks.
    erases: [u32; DIES as usize],
    /// The dies of the translation pages, the one programmed last first.
    translation: Vec<u32>,
}

fn played(name: &str, lanes: u32) -> Played {
    let dimensions = Dimensions {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks: BLOCKS,
        pages_per_block: 16,
        page_bytes: 512,
        spare_bytes: 32,
    };
    let geometry = Geometry::new(dimensions).unwrap();
    let config = Config { lanes, cache_entries: 200, ..Config::new(LOGICAL) };
    let entry = table::table::<SimNand>().into_iter().find(|entry| entry.info.name == name).unwrap();
    let mut ftl = (entry.format)(Flash::new(SimNand::new(geometry, Capabilities::MODERN)), &config).unwrap();
    let mut state = 5_u32;
    for write in 0..10 * LOGICAL {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let lpn = Lpn(if write < LOGICAL { write } else { (state >> 8) % LOGICAL });
        ftl.write(lpn, &Stamp { lpn, version: 1 }).unwrap();
    }
    ftl.check().unwrap();
    let (mut host, mut erases) = ([0; DIES as usize], [0; DIES as usize]);
    for (block, count) in ftl.flash().nand().erase_counts().iter().enumerate() {
        erases[block % DIES as usize] += count;
    }
    let mut translation = Vec::new();
    for ppn in (0..geometry.pages()).map(Ppn) {
        let die = geometry.die_of(geometry.block_of(ppn));
        match ftl.flash_mut().nand_mut().read_spare(ppn).unwrap() {
            Some(spare) if spare.kind == PageKind::User => host[die as usize] += 1,
            Some(spare) if spare.kind == PageKind::Translation => translation.push((spare.seq, die)),
            _ => {}
        }
    }
    translation.sort_unstable_by_key(|(seq, _)| u64::MAX - seq);
    Played { host, erases, translation: translation.into_iter().map(|(_, die)| die).collect() }
}

fn most_over_least(counts: &[u32]) -> f64 {
    f64::from(*counts.iter().max().unwrap()) / f64::from((*counts.iter().min().unwrap()).max(1))
}

#[test]
fn every_die_has_its_share_of_data_of_metadata_and_of_erases() {
    for name in ["page", "dftl", "lazy", "uftl", "ib-ftl", "gecko"] {
        let Played { host, erases, translation } = played(name, DIES);
        assert!(most_over_least(&host) < 1.1, "{name}: host data {host:?}");
        assert!(most_over_least(&erases) < 1.1, "{name}: erases {erases:?}");
        if name != "page" {
            let mut dies = translation[..DIES as usize].to_vec();
            dies.sort_unstable();
            assert_eq!(dies, [0, 1, 2, 3], "{name}: translation pages programmed last");
        }
    }
}

#[test]
fn two_lanes_share_four_dies() {
    for name in ["page", "dftl", "gecko"] {
        let Played { host, erases, .. } = played(name, 2);
        let banks = |counts: [u32; DIES as usize]| [counts[0] + counts[1], counts[2] + counts[3]];
        assert!(most_over_least(&banks(host)) < 1.1, "{name}: host data {host:?}");
        assert!(most_over_least(&banks(erases)) < 1.1, "{name}: erases {erases:?}");
    }
}
