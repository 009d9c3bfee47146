//! What a collection says may run together ([`Branch`]): copies of a victim's pages, if the mapping
//! lets pages move apart.

use super::one_die;
use ftl::{Branch, Config, Flash, Op, OpKind, Purpose};
use nand::{Capabilities, Lpn, SimNand, Stamp};
use openftl_ftl as ftl;
use std::collections::BTreeSet;

/// The copies of each collection of host data, under random writes.
fn collections(name: &str) -> Vec<Vec<Op>> {
    let entry = table::find::<SimNand>(name).expect("an FTL of the table");
    let flash = Flash::new(SimNand::new(one_die(80, 16, 512), Capabilities::MODERN));
    let config = Config { cache_entries: 40, ..Config::new(800) };
    let mut disk = (entry.format)(flash, &config).expect("a disk that fits");
    disk.flash_mut().set_logging(true);
    let (mut state, mut found, mut copies) = (7_u32, Vec::new(), Vec::new());
    for n in 0..4000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let lpn = Lpn(if n < 800 { n } else { (state >> 8) % 800 });
        disk.write(lpn, &Stamp { lpn, version: n as u16 }).expect("a write");
        for op in disk.flash_mut().drain_log().filter(|op| op.purpose == Purpose::Gc) {
            match op.kind {
                OpKind::Copy => copies.push(op),
                OpKind::Erase => found.push(core::mem::take(&mut copies)),
                _ => {}
            }
        }
    }
    found.retain(|copies| copies.len() > 1);
    assert!(found.len() > 20, "{name}: {} collections that move pages", found.len());
    found
}

#[test]
fn pages_of_a_victim_move_together_unless_a_ring_of_updates_needs_their_order() {
    for name in ["dftl", "gecko"] {
        for copies in collections(name) {
            let branches: BTreeSet<(u32, u32)> =
                copies.iter().map(|op| (op.branch.section, op.branch.number)).collect();
            assert_eq!(branches.len(), copies.len(), "{name}: {copies:?}");
            assert!(copies.iter().all(|op| op.branch != Branch::NONE), "{name}: {copies:?}");
            // What a store in flash does comes between, and waits for what was before.
            let sections: BTreeSet<u32> = branches.iter().map(|(section, _)| *section).collect();
            assert!(sections.len() == 1 || name == "gecko", "{name}: {copies:?}");
        }
    }
    for copies in collections("lazy") {
        assert!(copies.iter().all(|op| op.branch == Branch::NONE), "{copies:?}");
    }
}
