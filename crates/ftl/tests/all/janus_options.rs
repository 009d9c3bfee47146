//! Janus-FTL beyond its paper: every option agrees with a plain model and does what it is there
//! for, and none is on by default.

#![allow(clippy::unwrap_used)]

use super::one_die;
use ftl::{Config, Flash, Ftl, FtlError, JanusOptions, Maps, ftls};
use nand::{Capabilities, Lpn, SimNand, Stamp};
use openftl_ftl as ftl;

const PAGES: u32 = 16;
const LOGICAL_BLOCKS: u32 = 100;
const BLOCKS: u32 = 128;

fn device() -> Flash<SimNand> {
    let geometry = one_die(BLOCKS, PAGES, 512);
    Flash::new(SimNand::new(geometry, Capabilities::MODERN))
}

fn entry(name: &str) -> ftls::Entry<SimNand> {
    table::table::<SimNand>().into_iter().find(|entry| entry.info.name == name).unwrap()
}

fn config(janus: JanusOptions) -> Config {
    Config { janus, ..Config::new(LOGICAL_BLOCKS * PAGES) }
}

const VALIDITY: JanusOptions = JanusOptions { defuse_among: 16, ..JanusOptions::PAPER };
const LEARNING: JanusOptions = JanusOptions { learn_utilisation: true, ..JanusOptions::PAPER };
const BLOCK_MAP: JanusOptions = JanusOptions { page_map_percent: 25, ..JanusOptions::PAPER };
const ALL: JanusOptions =
    JanusOptions { defuse_among: 5, learn_utilisation: true, page_map_percent: 40, ..JanusOptions::PAPER };

fn random(state: &mut u32, below: u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    (*state >> 8) % below
}

/// Writes of which most go to a fifth of the disk, with trims; every page is read back at the end.
/// The versions that were written.
fn work(ftl: &mut dyn Ftl<SimNand>, versions: &mut [u16], writes: u32) {
    let (mut state, pages) = (1999, versions.len() as u32);
    for i in 0..writes {
        let everywhere = random(&mut state, 4) == 0;
        let lpn = random(&mut state, if everywhere { pages } else { pages / 5 });
        if i % 97 == 0 {
            let count = (PAGES / 2).min(pages - lpn);
            ftl.trim(Lpn(lpn), count).unwrap();
            versions[lpn as usize..(lpn + count) as usize].fill(0);
            continue;
        }
        let version = (i % 60_000) as u16 + 1;
        ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version }).unwrap();
        versions[lpn as usize] = version;
    }
    check(ftl, versions);
}

fn check(ftl: &mut dyn Ftl<SimNand>, versions: &[u16]) {
    for (lpn, &version) in (0..).zip(versions) {
        let mut got = Stamp::UNWRITTEN;
        ftl.read(Lpn(lpn), &mut got).unwrap();
        let expected = if version == 0 { Stamp::UNWRITTEN } else { Stamp { lpn: Lpn(lpn), version } };
        assert_eq!(got, expected, "logical page {lpn}");
    }
    ftl.check().unwrap();
}

/// A trim is not on flash before its page is written again: after a mount an old version of it may
/// be read.
fn trimmed_pages_may_be_back(ftl: &mut dyn Ftl<SimNand>, versions: &mut [u16]) {
    for (lpn, version) in (0..).zip(versions).filter(|(_, version)| **version == 0) {
        let mut got = Stamp::UNWRITTEN;
        ftl.read(Lpn(lpn), &mut got).unwrap();
        assert!(got == Stamp::UNWRITTEN || got.lpn == Lpn(lpn), "logical page {lpn} reads {got:?}");
        *version = if got == Stamp::UNWRITTEN { 0 } else { got.version };
    }
}

fn run(name: &str, config: Config) -> Box<dyn Ftl<SimNand>> {
    let mut ftl = (entry(name).format)(device(), &config).unwrap();
    let mut versions = vec![0; config.logical_pages as usize];
    work(&mut *ftl, &mut versions, 60_000);
    ftl
}

fn gauge(ftl: &dyn Ftl<SimNand>, name: &str) -> Option<u64> {
    ftl.gauges().iter().find(|gauge| gauge.name == name).map(|gauge| gauge.value)
}

fn ram(ftl: &dyn Ftl<SimNand>, name: &str) -> u64 {
    ftl.ram().iter().filter(|item| item.name == name).map(|item| item.bytes).sum()
}

#[test]
fn every_option_keeps_what_was_written() {
    for name in ["janus", "janus-fixed"] {
        for options in [JanusOptions::PAPER, VALIDITY, LEARNING, BLOCK_MAP, ALL] {
            for maps in [Maps::InFlash, Maps::NonVolatile] {
                let ftl = run(name, Config { maps, ..config(options) });
                assert!(ftl.flash().counts().total().erases > u64::from(10 * BLOCKS), "{name} reclaimed nothing");
            }
        }
    }
}

#[test]
fn the_paper_s_preset_has_none_of_them() {
    assert_eq!(Config::new(1).janus, JanusOptions::PAPER);
    let paper = run("janus", config(JanusOptions::PAPER));
    assert_eq!(gauge(&*paper, "learned_bend_percent"), None);
    // Among one there is nothing to choose, and a page map of everything is what the paper has.
    let nothing = JanusOptions { defuse_among: 0, page_map_percent: 100, ..JanusOptions::PAPER };
    assert_eq!(run("janus", config(nothing)).flash().counts().total(), paper.flash().counts().total());
}

#[test]
fn a_defusion_by_validity_leaves_less_to_copy() {
    let copies = |options| {
        let ftl = run("janus-fixed", config(options));
        ftl.flash().counts().total().programs
    };
    let (recency, validity) = (copies(JanusOptions::PAPER), copies(VALIDITY));
    assert!(validity < recency, "{validity} pages programmed, {recency} by recency");
}

#[test]
fn learning_sees_victims_emptier_than_equation_5_says() {
    let ftl = run("janus", config(LEARNING));
    let bend = gauge(&*ftl, "learned_bend_percent").unwrap();
    assert!((101..=800).contains(&bend), "{bend}%");
    assert_eq!(gauge(&*run("janus-fixed", config(LEARNING)), "learned_bend_percent"), None);
}

#[test]
fn a_block_map_holds_page_entries_of_its_share_only() {
    let (whole, quarter) = (run("janus", config(JanusOptions::PAPER)), run("janus", config(BLOCK_MAP)));
    let entries = |blocks: u32| u64::from(blocks * PAGES * 4);
    // Beside the entries: the group of each logical block, and of each group whether it is free.
    assert_eq!(ram(&*whole, "fused_page_map"), entries(LOGICAL_BLOCKS) + u64::from(8 * LOGICAL_BLOCKS));
    assert_eq!(ram(&*quarter, "fused_page_map"), entries(25) + u64::from(4 * (LOGICAL_BLOCKS + 25)));
    assert_eq!(ram(&*whole, "block_table"), ram(&*quarter, "block_table"));
    assert!(gauge(&*quarter, "fused_blocks_wanted").unwrap() <= 25);
    assert!(gauge(&*quarter, "fused_blocks").unwrap() <= 25 && gauge(&*whole, "fused_blocks").unwrap() > 0);
}

#[test]
fn a_disk_can_be_mounted_with_a_smaller_or_larger_page_map() {
    let mut ftl = (entry("janus").format)(device(), &config(JanusOptions::PAPER)).unwrap();
    let mut versions = vec![0; ftl.logical_pages() as usize];
    work(&mut *ftl, &mut versions, 20_000);
    for options in [BLOCK_MAP, ALL, JanusOptions { page_map_percent: 1, ..ALL }, JanusOptions::PAPER] {
        let (mut mounted, _) = (entry("janus").mount.unwrap())(ftl.into_flash(), &config(options)).unwrap();
        let most = LOGICAL_BLOCKS * options.page_map_percent / 100;
        assert!(gauge(&*mounted, "fused_blocks").unwrap() <= u64::from(most), "{options:?}");
        trimmed_pages_may_be_back(&mut *mounted, &mut versions);
        check(&mut *mounted, &versions);
        work(&mut *mounted, &mut versions, 5000);
        ftl = mounted;
    }
}

#[test]
fn a_page_map_of_nothing_is_refused() {
    for percent in [0, 101] {
        let asked = config(JanusOptions { page_map_percent: percent, ..JanusOptions::PAPER });
        let Err(FtlError::Unsupported { reason, .. }) = (entry("janus").format)(device(), &asked) else {
            panic!("{percent}% accepted")
        };
        assert!(reason.contains("ask for 1 to 100"), "{reason}");
    }
}
