//! FTLs that group neighbouring logical blocks.

#![allow(clippy::unwrap_used)]

use super::one_die;
use ftl::{Config, Flash, Ftl, FtlError, GroupOptions};
use nand::{Capabilities, Lpn, SimNand, Stamp};
use openftl_ftl as ftl;

const LOGICAL: u32 = 900;

fn device() -> SimNand {
    let geometry = one_die(140, 8, 512);
    SimNand::new(geometry, Capabilities::MODERN)
}

fn config(groups: Option<(u32, u32)>) -> Config {
    Config { groups: groups.map(|(blocks, extra)| GroupOptions { blocks, extra }), ..Config::new(LOGICAL) }
}

/// Fills a disk, then overwrites a third of it more than the rest; the version of every page.
fn written(name: &str, groups: Option<(u32, u32)>) -> (Box<dyn Ftl<SimNand>>, Vec<u16>) {
    let mut ftl = (table::find::<SimNand>(name).unwrap().format)(Flash::new(device()), &config(groups)).unwrap();
    let mut versions = vec![0; LOGICAL as usize];
    let mut state = 11_u32;
    for at in 0..6 * LOGICAL {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let lpn = if at < LOGICAL { at } else { (state >> 8) % if at % 2 == 0 { LOGICAL } else { LOGICAL / 3 } };
        versions[lpn as usize] += 1;
        ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: versions[lpn as usize] }).unwrap();
    }
    ftl.check().unwrap();
    (ftl, versions)
}

#[test]
fn one_log_block_for_each_group_of_one_is_bast() {
    let (bast, _) = written("bast", None);
    let (ftl, _) = written("reconfigurable", Some((1, 1)));
    assert_eq!(ftl.flash().counts(), bast.flash().counts());
    let (ftl, _) = written("reconfigurable", Some((16, 8)));
    assert!(ftl.flash().counts().total().programs < bast.flash().counts().total().programs);
}

fn mounted(
    name: &str,
    ftl: Box<dyn Ftl<SimNand>>,
    groups: Option<(u32, u32)>,
) -> Result<Box<dyn Ftl<SimNand>>, FtlError> {
    let mount = table::find::<SimNand>(name).unwrap().mount.unwrap();
    Ok(mount(Flash::new(ftl.into_flash().into_nand()), &config(groups))?.0)
}

fn assert_holds(ftl: &mut Box<dyn Ftl<SimNand>>, versions: &[u16]) {
    ftl.check().unwrap();
    for (lpn, &version) in (0..).map(Lpn).zip(versions) {
        let mut got = Stamp::UNWRITTEN;
        ftl.read(lpn, &mut got).unwrap();
        assert_eq!(got, Stamp { lpn, version });
    }
}

#[test]
fn any_groups_hold_what_was_written() {
    for name in ["reconfigurable", "superblock"] {
        for groups in [(1, 1), (1, 7), (3, 1), (5, 2), (64, 20), (1000, 1000)] {
            let (ftl, versions) = written(name, Some(groups));
            assert_holds(&mut mounted(name, ftl, Some(groups)).unwrap(), &versions);
        }
    }
}

#[test]
fn log_blocks_may_be_grouped_otherwise_by_a_mount() {
    for groups in [(1, 1), (3, 2), (64, 20)] {
        let (ftl, versions) = written("reconfigurable", None);
        assert_holds(&mut mounted("reconfigurable", ftl, Some(groups)).unwrap(), &versions);
    }
}

#[test]
fn superblocks_of_another_size_are_refused() {
    let (ftl, _) = written("superblock", Some((8, 4)));
    let Err(error) = mounted("superblock", ftl, Some((3, 4))) else { panic!("it was mounted") };
    assert!(matches!(error, FtlError::Damaged { structure: "superblock", .. }), "{error}");
}

#[test]
fn a_superblock_of_all_programs_little_more_than_page_mapping() {
    let programs = |name, groups| written(name, groups).0.flash().counts().total().programs;
    let (page, one) = (programs("page", None), programs("superblock", Some((1000, 1000))));
    assert!(one < page * 5 / 4, "{one}, {page}");
    assert!(one < programs("superblock", Some((4, 2))), "{one}");
}

#[test]
fn groups_of_nothing_are_refused() {
    for name in ["reconfigurable", "superblock"] {
        for groups in [(0, 1), (1, 0)] {
            let made = (table::find::<SimNand>(name).unwrap().format)(Flash::new(device()), &config(Some(groups)));
            assert!(matches!(made, Err(FtlError::Unsupported { .. })), "{name} {groups:?}");
        }
    }
}
