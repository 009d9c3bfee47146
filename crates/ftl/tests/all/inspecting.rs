//! What an FTL shows of itself agrees with what it did, and looking changes nothing.

#![allow(clippy::unwrap_used)]

use super::one_die;
use ftl::inspect::{BlockUse, BlockView, Inspector, LevelView, RunView, StreamView};
use ftl::{Config, Flash, Ftl, Setting, ftls};
use nand::{Capabilities, Lpn, Nand, PageKind, Ppn, ProgramOrder, SimNand, Stamp};
use openftl_ftl as ftl;

#[derive(Default)]
struct Seen {
    blocks: Vec<BlockView>,
    streams: Vec<StreamView>,
    levels: Vec<LevelView>,
    runs: Vec<RunView>,
    metadata: Vec<Ppn>,
}

impl Inspector for Seen {
    fn block(&mut self, view: BlockView) {
        self.blocks.push(view);
    }
    fn stream(&mut self, view: StreamView) {
        self.streams.push(view);
    }
    fn level(&mut self, view: LevelView) {
        self.levels.push(view);
    }
    fn run(&mut self, view: RunView) {
        self.runs.push(view);
    }
    fn metadata(&mut self, ppn: Ppn) {
        self.metadata.push(ppn);
    }
}

fn written(entry: &ftls::Entry<SimNand>) -> (Box<dyn Ftl<SimNand>>, u32) {
    let capabilities = Capabilities { program_order: ProgramOrder::Free, spare_reprograms: 2, ..Capabilities::MODERN };
    let logical_pages = 500;
    let config = Config { cache_entries: 24, ..Config::new(logical_pages) };
    let mut ftl = (entry.format)(Flash::new(SimNand::new(one_die(128, 8, 512), capabilities)), &config).unwrap();
    for (write, version) in (0_u64..3000).zip(1..) {
        let lpn = Lpn((write.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u32 % logical_pages);
        ftl.write(lpn, &Stamp { lpn, version }).unwrap();
    }
    (ftl, logical_pages)
}

#[test]
fn every_ftl_shows_every_block_and_no_page_too_few() {
    for entry in table::table::<SimNand>() {
        let name = entry.info.name;
        let (mut ftl, logical_pages) = written(&entry);
        let before = *ftl.flash().counts();
        let mut seen = Seen::default();
        ftl.inspect(&mut seen);
        assert_eq!(*ftl.flash().counts(), before, "{name}: looking took flash operations");
        let numbers: Vec<u32> = seen.blocks.iter().map(|view| view.block.0).collect();
        assert_eq!(numbers, (0..128).collect::<Vec<_>>(), "{name}");
        let free = seen.blocks.iter().filter(|view| view.used_for == BlockUse::Free);
        assert!(free.clone().all(|view| view.live == 0), "{name}");
        assert_eq!(free.count() as u32, ftl.free_blocks(), "{name}");
        let holds_host = |view: &&BlockView| matches!(view.used_for, BlockUse::Host | BlockUse::Data | BlockUse::Log);
        let live: u32 = seen.blocks.iter().filter(holds_host).map(|view| view.live).sum();
        assert!(live >= logical_pages * 9 / 10, "{name}: {live} live pages");
        for stream in seen.streams.iter().filter(|stream| stream.block.is_some()) {
            assert_eq!(seen.blocks[stream.block.index()].used_for, stream.used_for, "{name}: {stream:?}");
        }
        for level in &seen.levels {
            assert!(level.dirty <= level.entries && level.entries <= level.capacity, "{name}: {level:?}");
            assert!(ftl.ram().iter().any(|item| item.name == level.name), "{name}: {level:?}");
        }
        for ppn in seen.metadata {
            let spare = ftl.flash_mut().nand_mut().read_spare(ppn).unwrap().unwrap();
            assert_ne!(spare.kind, PageKind::User, "{name}: {ppn}");
        }
    }
}

#[test]
fn an_ftl_over_logarithmic_gecko_shows_its_runs_from_the_oldest_on() {
    for entry in table::table::<SimNand>().iter().filter(|entry| entry.info.validity == Some("gecko")) {
        assert!(entry.info.honours(Setting::Gecko), "{}", entry.info.name);
        let mut seen = Seen::default();
        written(entry).0.inspect(&mut seen);
        assert!(!seen.runs.is_empty() && seen.runs.is_sorted_by_key(|run| run.number), "{:?}", seen.runs);
        let pages: u32 = seen.runs.iter().map(|run| run.pages).sum();
        assert!(seen.metadata.len() as u32 >= pages && seen.levels.iter().any(|level| level.name == "gecko_buffer"));
    }
}
