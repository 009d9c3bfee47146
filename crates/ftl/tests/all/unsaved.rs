//! A battery that saved nothing: what was written is found by reading the whole device, and trims
//! alone may be undone.

#![allow(clippy::unwrap_used)]

use super::{capabilities, one_die};
use ftl::ftls::{Durability, Entry};
use ftl::{Config, Flash, Ftl, FtlError};
use nand::{Lpn, SimNand, Stamp};
use openftl_ftl as ftl;

const LOGICAL: u32 = 150;
const SEEDS: u32 = 20;
const MOUNTS: u32 = 40;

/// What the host did to a page.
#[derive(Clone, Default)]
struct Page {
    /// Every version that was written, the newest last.
    written: Vec<u16>,
    /// It was trimmed since.
    trimmed: bool,
}

impl Page {
    fn may_read(&self, version: u16) -> bool {
        if self.trimmed || self.written.is_empty() {
            version == 0 || self.written.contains(&version)
        } else {
            self.written.last() == Some(&version)
        }
    }
}

struct Host {
    pages: Vec<Page>,
    version: u16,
    state: u32,
}

impl Host {
    fn below(&mut self, most: u32) -> u32 {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.state >> 8) % most
    }

    fn work(&mut self, ftl: &mut dyn Ftl<SimNand>) {
        for _ in 0..50 + self.below(200) {
            let lpn = self.below(LOGICAL);
            if self.below(4) == 0 {
                let count = (1 + self.below(4)).min(LOGICAL - lpn);
                ftl.trim(Lpn(lpn), count).unwrap();
                self.pages[lpn as usize..(lpn + count) as usize].iter_mut().for_each(|page| page.trimmed = true);
            } else {
                self.version += 1;
                ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: self.version }).unwrap();
                let page = &mut self.pages[lpn as usize];
                page.written.push(self.version);
                page.trimmed = false;
            }
        }
    }

    fn check(&mut self, ftl: &mut dyn Ftl<SimNand>, what: &str) {
        ftl.check().unwrap_or_else(|error| panic!("{what}: {error}"));
        for (lpn, page) in (0..).zip(&mut self.pages) {
            let mut got = Stamp::UNWRITTEN;
            match ftl.read(Lpn(lpn), &mut got) {
                // What the trim freed was erased, and an older entry leads there.
                Err(FtlError::Lost { .. }) if page.trimmed => continue,
                read => read.unwrap_or_else(|error| panic!("{what}: logical page {lpn}: {error}")),
            }
            let version = if got == Stamp::UNWRITTEN { 0 } else { got.version };
            assert!(version == 0 || got.lpn == Lpn(lpn), "{what}: logical page {lpn} reads {got:?}");
            assert!(page.may_read(version), "{what}: logical page {lpn} reads {got:?}, was {:?}", page.written);
        }
    }
}

#[test]
fn what_was_written_is_there_although_the_battery_saved_nothing() {
    let with_battery = |entry: &Entry<SimNand>| entry.info.durable == Durability::Battery;
    for entry in table::table::<SimNand>().into_iter().filter(with_battery) {
        let config = Config { cache_entries: 8, battery: true, ..Config::new(LOGICAL) };
        for seed in 0..SEEDS {
            let device = SimNand::new(one_die(60, 8, 512), capabilities(&entry.info));
            let mut ftl = (entry.format)(Flash::new(device), &config).unwrap();
            let mut host = Host { pages: vec![Page::default(); LOGICAL as usize], version: 0, state: seed };
            for mount in 0..MOUNTS {
                host.work(&mut *ftl);
                (ftl, _) = entry.mount.unwrap()(Flash::new(ftl.into_flash().into_nand()), &config).unwrap();
                host.check(&mut *ftl, &format!("{}, seed {seed}, mount {mount}", entry.info.name));
            }
            assert!(host.version > 2000, "blocks were erased and written again");
        }
    }
}

#[test]
fn only_an_ftl_with_a_battery_programs_pages_while_it_lasts() {
    let mut with = 0;
    for entry in table::table::<SimNand>() {
        for battery in [true, false] {
            let flash = Flash::new(SimNand::new(one_die(60, 16, 512), capabilities(&entry.info)));
            let config = Config { battery, cache_entries: 40, ..Config::new(320) };
            let disk = (entry.format)(flash, &config).unwrap();
            let saves = battery && entry.info.durable == Durability::Battery;
            assert_eq!(disk.battery_pages() > 0, saves, "{} programs {}", entry.info.name, disk.battery_pages());
            with += u32::from(saves);
        }
    }
    assert!(with > 0, "no FTL has a battery");
}
