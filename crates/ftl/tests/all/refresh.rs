//! Data that can barely be read any more is moved in time.

#![allow(clippy::unwrap_used)]

use super::{every_ftl, ftl_named, one_die};
use ftl::{Config, Flash, Ftl, Purpose};
use nand::faults::{FaultPlan, Faulty};
use nand::{Capabilities, Lpn, ProgramOrder, SimNand, Stamp};
use openftl_ftl as ftl;

type Device = Faulty<SimNand>;

const LOGICAL: u32 = 200;

/// A device on which reading does harm: after 900 pages read of a block, all that is in it is lost.
fn device(program_order: ProgramOrder) -> Device {
    let geometry = one_die(80, 8, 512);
    let plan = FaultPlan { correctable_bits: 8, reads_per_flip: Some(100), ..FaultPlan::default() };
    Faulty::new(
        SimNand::new(geometry, Capabilities { program_order, spare_reprograms: 2, ..Capabilities::MODERN }),
        plan,
    )
}

fn expect(ftl: &mut dyn Ftl<Device>, lpn: u32, version: u16, what: &str) {
    let mut got = Stamp::UNWRITTEN;
    ftl.read(Lpn(lpn), &mut got).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(got, Stamp { lpn: Lpn(lpn), version }, "{what}");
}

/// Reads far more often than any block endures; half of the reads go to one page, which was written
/// last and so is in a block that is not full.
fn read_for_ever(name: &'static str, config: &Config, writes: bool) {
    let entry = ftl_named(name).unwrap();
    let mut ftl = (entry.format)(Flash::new(device(entry.info.program_order)), config).unwrap();
    let mut versions = vec![1_u16; LOGICAL as usize];
    for lpn in 0..LOGICAL {
        ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: 1 }).unwrap();
    }
    let mut state = 3_u32;
    for i in 0..40_000_u32 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let lpn = if i % 2 == 0 { LOGICAL - 1 } else { (state >> 8) % LOGICAL };
        if writes && i % 97 == 0 {
            versions[lpn as usize] += 1;
            ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: versions[lpn as usize] }).unwrap();
        }
        expect(&mut *ftl, lpn, versions[lpn as usize], &format!("{name}, read {i}"));
    }
    ftl.check().unwrap_or_else(|error| panic!("{name}: {error}"));
    // Overwriting a page on and on can be enough.
    assert!(writes || ftl.flash().counts().of(Purpose::Refresh).erases > 0, "{name}: nothing was moved");
    let Some(mount) = entry.mount else { return };
    ftl.power_failing().unwrap();
    let (mut ftl, _) = mount(Flash::new(ftl.into_flash().into_nand()), config).unwrap();
    for lpn in 0..LOGICAL {
        expect(&mut *ftl, lpn, versions[lpn as usize], &format!("{name}, mounted"));
    }
}

#[test]
fn nothing_is_lost_by_reading_for_ever() {
    for entry in every_ftl() {
        for writes in [false, true] {
            let config = Config { cache_entries: 16, ..Config::new(LOGICAL) };
            read_for_ever(entry.info.name, &config, writes);
        }
    }
}

#[test]
fn a_device_that_cannot_tell_loses_data_and_says_so() {
    let mut nand = device(ProgramOrder::Sequential);
    nand.plan_mut().correctable_bits = 0;
    let entry = ftl_named("page").unwrap();
    let mut ftl = (entry.format)(Flash::new(nand), &Config::new(LOGICAL)).unwrap();
    ftl.write(Lpn(0), &Stamp { lpn: Lpn(0), version: 1 }).unwrap();
    let mut got = Stamp::UNWRITTEN;
    let first_error = (0..2000).find(|_| ftl.read(Lpn(0), &mut got).is_err());
    assert_eq!(first_error, Some(99));
}
