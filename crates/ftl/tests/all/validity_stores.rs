//! Every page-validity store of the table against a set of pages, over pages kept in memory.

#![allow(clippy::unwrap_used)]

use ftl::validity::flash_bitmap::FlashBitmap;
use ftl::validity::gecko::Gecko;
use ftl::validity::log::{LogOptions, ValidityLog};
use ftl::validity::ram_bitmap::RamBitmap;
use ftl::validity::{self, Build, Fast, Make, MetaStore, PageSet, Receiver, Site, Store, Validity};
use ftl::{FtlError, GeckoOptions, Purpose};
use nand::{BlockId, Flags, NandError, PageKind, Ppn, Spare};
use openftl_ftl as ftl;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Pages kept in memory, each written once.
#[derive(Clone, Default)]
struct Memory {
    page_bytes: usize,
    pages: Vec<(Spare, Vec<u8>)>,
    live: BTreeSet<u32>,
    seq: u64,
    reads: u64,
    /// Programs left before power goes, if it is to go.
    cut_after: Option<u32>,
    /// Whether the program that power loss meets leaves a spare area that reads well over data that
    /// does not.
    tear: bool,
    torn: BTreeSet<u32>,
    /// Whether dead pages may be read: only recovery may.
    recovering: bool,
}

impl Memory {
    fn new(page_bytes: u32) -> Self {
        Self { page_bytes: page_bytes as usize, seq: 1, ..Self::default() }
    }

    fn program(&mut self, tag: u32, aux: u32, data: Vec<u8>) -> Ppn {
        let spare = Spare {
            kind: PageKind::Validity,
            tag,
            seq: self.seq,
            erase_count: 0,
            erased_at: 0,
            aux,
            flags: Flags::NONE,
        };
        self.seq += 1;
        self.pages.push((spare, data));
        self.live.insert(self.pages.len() as u32 - 1);
        Ppn(self.pages.len() as u32 - 1)
    }
}

impl MetaStore for Memory {
    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    fn blocks(&self) -> u32 {
        BLOCKS
    }

    fn pages_per_block(&self) -> u32 {
        unreachable!("no store asks again what it was made for")
    }

    fn append(&mut self, _: Purpose, tag: u32, aux: u32, data: &[u8]) -> Result<Ppn, FtlError> {
        assert!(data.len() <= self.page_bytes);
        if self.cut_after == Some(0) {
            if self.tear {
                let torn = self.program(tag, aux, Vec::new());
                self.live.remove(&torn.0);
                self.torn.insert(torn.0);
                self.tear = false;
            }
            return Err(NandError::PowerLost.into());
        }
        self.cut_after = self.cut_after.map(|left| left - 1);
        Ok(self.program(tag, aux, data.to_vec()))
    }

    fn fetch(&mut self, _: Purpose, ppn: Ppn, out: &mut [u8]) -> Result<Spare, FtlError> {
        assert!(self.live.contains(&ppn.0) || self.recovering, "{ppn} was discarded");
        if self.torn.contains(&ppn.0) {
            return Err(NandError::Uncorrectable { ppn }.into());
        }
        let (spare, data) = &self.pages[ppn.index()];
        out.fill(0xFF);
        out[..data.len()].copy_from_slice(data);
        self.reads += 1;
        Ok(*spare)
    }

    fn discard(&mut self, ppn: Ppn) {
        assert!(self.live.remove(&ppn.0), "{ppn} was discarded twice");
    }

    fn next_seq(&self) -> u64 {
        self.seq
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Some pages of the device die.
    Die(u32, u32),
    Erase(u32),
    /// A block was erased, and its first page programmed before the store hears of it.
    EraseSaidLate(u32),
    /// A collector moves a page of the store.
    Move(u32),
    Flush,
    /// The FTL programs so many pages of its own, and this store none.
    Elsewhere(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (any::<u32>(), 1..40_u32).prop_map(|(at, count)| Step::Die(at, count)),
        4 => any::<u32>().prop_map(Step::Erase),
        1 => any::<u32>().prop_map(Step::EraseSaidLate),
        2 => any::<u32>().prop_map(Step::Move),
        1 => Just(Step::Flush),
        1 => (0..80_000_u32).prop_map(Step::Elsewhere),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..300)
}

const BLOCKS: u32 = 9;

/// A store at work on a device.
struct Rig<V> {
    name: &'static str,
    store: V,
    memory: Memory,
    site: Site,
    dead: BTreeSet<u32>,
}

impl<V: Validity> Rig<V> {
    fn new(name: &'static str, make: Make<V>, site: Site) -> Self {
        let store = make(&site).unwrap();
        Self { name, store, memory: Memory::new(site.page_bytes), site, dead: BTreeSet::new() }
    }

    /// Pages die, as many at a time as may without a chance to collect garbage; the bound on what
    /// is appended holds.
    fn die(&mut self, at: u32, count: u32) {
        let pages = self.site.blocks * self.site.pages_per_block;
        let dying: BTreeSet<u32> = (0..count).map(|i| (at / 7 + i * (at % 7 + 1)) % pages).collect();
        let dying: Vec<u32> = dying.difference(&self.dead).copied().collect();
        for group in dying.chunks(self.site.reports as usize) {
            let before = self.memory.pages.len();
            group.iter().for_each(|&ppn| self.store.invalidate(&mut self.memory, Ppn(ppn)).unwrap());
            assert!(self.memory.pages.len() - before <= self.store.reserve_pages() as usize);
        }
        self.dead.extend(dying);
    }

    fn step(&mut self, step: Step) {
        let before = self.memory.pages.len();
        match step {
            Step::Die(at, count) => self.die(at, count),
            Step::Erase(block) => {
                let block = block % self.site.blocks;
                self.dead.retain(|page| page / self.site.pages_per_block != block);
                let seq = self.memory.seq;
                self.store.erased(&mut self.memory, BlockId(block), seq).unwrap();
                assert!(self.memory.pages.len() - before <= self.store.reserve_pages() as usize);
                // A page is programmed before it can die.
                self.memory.seq += 1;
            }
            Step::EraseSaidLate(block) => {
                let block = block % self.site.blocks;
                self.dead.retain(|page| page / self.site.pages_per_block != block);
                let seq = self.memory.seq;
                self.memory.seq += 1;
                self.store.erased(&mut self.memory, BlockId(block), seq).unwrap();
            }
            Step::Move(which) if !self.memory.live.is_empty() => {
                let memory = &mut self.memory;
                let from = *memory.live.iter().nth(which as usize % memory.live.len()).unwrap();
                let (spare, data) = memory.pages[from as usize].clone();
                assert!(self.store.owns(Ppn(from), &spare));
                let to = memory.program(spare.tag, spare.aux, data);
                self.store.moved(Ppn(from), to, &memory.pages[to.index()].0);
                memory.discard(Ppn(from));
            }
            Step::Move(_) => {}
            Step::Flush => self.store.flush(&mut self.memory).unwrap(),
            Step::Elsewhere(pages) => self.memory.seq += u64::from(pages),
        }
        let memory = &self.memory;
        assert!(memory.live.len() <= self.store.footprint_pages() as usize, "{} pages live", memory.live.len());
        let owned = |&page: &u32| self.store.owns(Ppn(page), &memory.pages[page as usize].0);
        assert!(memory.live.iter().all(owned));
    }

    /// The store knows exactly the dead pages.
    fn check(&mut self) {
        for block in 0..self.site.blocks {
            let mut found = PageSet::new(self.site.pages_per_block);
            self.store.query(&mut self.memory, BlockId(block), &mut found).unwrap();
            for offset in 0..self.site.pages_per_block {
                let dead = self.dead.contains(&(block * self.site.pages_per_block + offset));
                assert_eq!(found.contains(offset), dead, "{}: page {offset} of block {block}", self.name);
            }
        }
    }
}

/// Runs steps on a store of any type.
struct Run<'a> {
    name: &'static str,
    site: Site,
    steps: &'a [Step],
}

impl Receiver for Run<'_> {
    type Output = ();

    fn receive<V: Validity + 'static>(self, make: Make<V>) {
        let mut rig = Rig::<V>::new(self.name, make, self.site);
        for step in self.steps {
            rig.step(*step);
        }
        rig.check();
    }
}

/// A store that is found again after power loss.
trait Recovered: Store + Clone {
    fn recovered(memory: &mut Memory, site: &Site, first_seq: &[Option<u64>]) -> Self;

    fn pages(&self) -> Vec<Ppn>;
}

fn found(memory: &Memory) -> Vec<(Ppn, Spare)> {
    let mut all: Vec<_> = (0..).map(Ppn).zip(&memory.pages).map(|(ppn, (spare, _))| (ppn, *spare)).collect();
    all.sort_by_key(|(ppn, _)| ppn.0.wrapping_mul(0x9E37_79B1));
    all
}

impl Recovered for FlashBitmap {
    /// Pages that cannot be read are left out, as a survey of the device does.
    fn recovered(memory: &mut Memory, site: &Site, first_seq: &[Option<u64>]) -> Self {
        let readable: Vec<_> = found(memory).into_iter().filter(|(ppn, _)| !memory.torn.contains(&ppn.0)).collect();
        let mut bitmap = Self::recover(site, readable).unwrap();
        (memory.live, memory.recovering) = (bitmap.pages().iter().map(|ppn| ppn.0).collect(), false);
        for block in (0..site.blocks).filter(|&block| first_seq[block as usize].is_none()) {
            let seq = memory.seq;
            bitmap.erased(memory, BlockId(block), seq).unwrap();
        }
        bitmap
    }

    fn pages(&self) -> Vec<Ppn> {
        self.live_pages().collect()
    }
}

impl Recovered for ValidityLog {
    fn recovered(memory: &mut Memory, site: &Site, first_seq: &[Option<u64>]) -> Self {
        let found = found(memory);
        let log = Self::recover(memory, site, found, |block| first_seq[block.index()]).unwrap();
        (memory.live, memory.recovering) = (log.pages().iter().map(|ppn| ppn.0).collect(), false);
        log
    }

    fn pages(&self) -> Vec<Ppn> {
        self.live_pages().collect()
    }
}

/// A rig that loses power.
struct Cuts<V> {
    rig: Rig<V>,
    /// Reports since the store last programmed a page.
    waiting: BTreeSet<u32>,
    /// Sequence number of the first page of each block.
    first_seq: Vec<Option<u64>>,
}

impl<V: Recovered> Cuts<V> {
    fn step(&mut self, step: Step, cut: Option<(u32, bool)>) {
        if let Step::Erase(block) = step {
            self.erase(block % BLOCKS, cut.is_some());
        } else if let (Step::Die(at, _), Some((after, tear))) = (step, cut) {
            self.cut_report(at % (BLOCKS * self.rig.site.pages_per_block), after, tear);
        } else if let Step::Die(at, _) = step {
            self.report(at % (BLOCKS * self.rig.site.pages_per_block)).unwrap();
        } else if let Step::Move(_) | Step::Flush | Step::Elsewhere(_) = step {
            let before = self.rig.store.flushes();
            self.rig.step(step);
            if self.rig.store.flushes() != before {
                self.waiting.clear();
            }
        }
    }

    fn report(&mut self, ppn: u32) -> Result<(), FtlError> {
        if !self.rig.dead.insert(ppn) {
            return Ok(());
        }
        let block = (ppn / self.rig.site.pages_per_block) as usize;
        if self.first_seq[block].is_none() {
            // A block that a mount finds empty is erased again when its first page is programmed.
            let seq = self.rig.memory.seq;
            self.first_seq[block] = Some(seq);
            self.rig.memory.seq += 1;
            self.rig.store.erased(&mut self.rig.memory, BlockId(block as u32), seq)?;
        }
        let before = self.rig.memory.pages.len();
        let reported = self.rig.store.invalidate(&mut self.rig.memory, Ppn(ppn));
        if self.rig.memory.pages.len() != before {
            self.waiting.clear();
        }
        self.waiting.insert(ppn);
        reported
    }

    /// Power goes while a page is reported, or right after; what is recovered lacks no more than
    /// what waited in RAM.
    fn cut_report(&mut self, ppn: u32, after: u32, tear: bool) {
        (self.rig.memory.cut_after, self.rig.memory.tear) = (Some(after), tear);
        let waiting = self.waiting.clone();
        let cut = self.report(ppn).is_err();
        if cut {
            self.waiting.extend(waiting);
        }
        self.recover();
    }

    /// The block was erased; if power goes, the store does not hear of it.
    fn erase(&mut self, block: u32, cut: bool) {
        let pages = self.rig.site.pages_per_block;
        self.rig.dead.retain(|page| page / pages != block);
        self.waiting.retain(|page| page / pages != block);
        self.first_seq[block as usize] = None;
        if cut {
            return self.recover();
        }
        let seq = self.rig.memory.seq;
        self.rig.store.erased(&mut self.rig.memory, BlockId(block), seq).unwrap();
    }

    fn recover(&mut self) {
        let memory = &mut self.rig.memory;
        (memory.cut_after, memory.tear, memory.recovering) = (None, false, true);
        memory.seq += 2;
        let pages_per_block = self.rig.site.pages_per_block;
        self.rig.store = V::recovered(memory, &self.rig.site, &self.first_seq);
        let mut said = BTreeSet::new();
        for block in 0..BLOCKS {
            let mut set = PageSet::new(pages_per_block);
            self.rig.store.query(&mut self.rig.memory, BlockId(block), &mut set).unwrap();
            let offsets = (0..pages_per_block).filter(|&offset| set.contains(offset));
            said.extend(offsets.map(|offset| block * pages_per_block + offset));
        }
        let name = V::ENTRY.name;
        assert!(
            said.is_subset(&self.rig.dead),
            "{name}: live pages {:?} are called dead",
            said.difference(&self.rig.dead)
        );
        let forgotten: BTreeSet<u32> = self.rig.dead.difference(&said).copied().collect();
        assert!(forgotten.is_subset(&self.waiting), "{name} forgot {forgotten:?}, of which {:?} waited", self.waiting);
        (self.rig.dead, self.waiting) = (said, BTreeSet::new());
    }
}

fn survives<V: Recovered>(site: Site, steps: &[(Step, Option<(u32, bool)>)]) {
    let first_seq = vec![Some(0); BLOCKS as usize];
    let mut cuts = Cuts::<V> { rig: Rig::new(V::ENTRY.name, V::make, site), waiting: BTreeSet::new(), first_seq };
    for (step, cut) in steps {
        cuts.step(*step, *cut);
    }
    cuts.rig.check();
    cuts.recover();
}

proptest! {
    /// Nothing live is ever called dead, and nothing is forgotten that was in flash.
    #[test]
    fn stores_in_flash_survive_power_cuts(
        pages_per_block in prop::sample::select(vec![4_u32, 7, 33, 130]),
        page_bytes in prop::sample::select(vec![64_u32, 128]),
        logical_part in prop_oneof![Just(100_u32), 0_u32..100],
        steps in prop::collection::vec((step(), prop::option::weighted(0.05, (0_u32..4, any::<bool>()))), 1..1500),
    ) {
        let logical_pages = BLOCKS * pages_per_block * logical_part / 100;
        let gecko = GeckoOptions::default();
        let site = Site { blocks: BLOCKS, pages_per_block, page_bytes, logical_pages, reports: 1, gecko };
        survives::<FlashBitmap>(site, &steps);
        survives::<ValidityLog>(site, &steps);
    }
}

#[test]
fn a_log_cut_after_every_flush_stays_as_short_as_it_promises() {
    let gecko = GeckoOptions::default();
    let site = Site { blocks: BLOCKS, pages_per_block: 4, page_bytes: 128, logical_pages: 0, reports: 1, gecko };
    let steps = (0..1000_u32).flat_map(|i| {
        let die = Step::Die(i * 5, 1);
        [(Step::Erase(i), None), (die, None), (Step::Flush, None), (Step::Die(i * 7, 1), Some((0, false)))]
    });
    survives::<ValidityLog>(site, &steps.collect::<Vec<_>>());
}

fn log(pages_per_block: u32, page_bytes: u32, entries: u64) -> ValidityLog {
    ValidityLog::new(LogOptions { blocks: BLOCKS, pages_per_block, page_bytes, entries, reports: 1 }).unwrap()
}

proptest! {
    #[test]
    fn every_store_agrees_with_a_set_of_pages(
        pages_per_block in prop::sample::select(vec![1_u32, 4, 7, 33, 64, 130, 600, 2000]),
        page_bytes in prop::sample::select(vec![128_u32, 512]),
        logical_part in 0_u32..100,
        reports in 1_u32..40,
        steps in steps(),
    ) {
        for entry in validity::table() {
            // The bound of Logarithmic Gecko is on one flush.
            let reports = if entry.name == "gecko" { 1 } else { reports };
            let logical_pages = BLOCKS * pages_per_block * logical_part / 100;
            let gecko = GeckoOptions::default();
            let site = Site { blocks: BLOCKS, pages_per_block, page_bytes, logical_pages, reports, gecko };
            let run = || Run { name: entry.name, site, steps: &steps };
            Fast::with::<RamBitmap, _>(entry.name, run()).unwrap();
            Fast::with::<Gecko, _>(entry.name, run()).unwrap();
        }
    }
}

#[test]
fn the_table_is_found_by_its_names_and_nothing_else_is() {
    let names: Vec<&str> = validity::table().iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["ram-bitmap", "flash-bitmap", "log", "gecko"]);
    assert!(names.iter().all(|name| validity::find(name).is_some_and(|entry| entry.name == *name)));
    let site = Site {
        blocks: 1,
        pages_per_block: 1,
        page_bytes: 512,
        logical_pages: 1,
        reports: 1,
        gecko: GeckoOptions::default(),
    };
    assert!(Fast::with::<Gecko, _>("flash", Run { name: "flash", site, steps: &[] }).is_none());
}

#[test]
fn a_flash_bitmap_costs_a_read_and_a_program_a_report_and_a_read_a_query() {
    let (mut memory, mut store) = (Memory::new(512), FlashBitmap::new(BLOCKS, 64, 512, 1));
    store.invalidate(&mut memory, Ppn(100)).unwrap();
    assert_eq!((memory.reads, memory.pages.len()), (0, 1), "nothing was written before");
    (0..50).for_each(|page| store.invalidate(&mut memory, Ppn(page)).unwrap());
    assert_eq!((memory.reads, memory.pages.len()), (50, 51));
    store.query(&mut memory, BlockId(0), &mut PageSet::new(64)).unwrap();
    assert_eq!((memory.reads, memory.pages.len()), (51, 51));
    store.erased(&mut memory, BlockId(0), 60).unwrap();
    assert_eq!((memory.reads, memory.pages.len()), (52, 52));
}

/// Appendix E: with a log of twice the pages that can be dead, an entry is reported again at most
/// once on average.
#[test]
fn a_log_twice_as_long_as_dead_pages_rewrites_each_entry_at_most_once() {
    let (pages_per_block, page_bytes, per_page) = (64, 512, (512 - 32) / 10);
    let (mut memory, mut store) = (Memory::new(page_bytes), log(pages_per_block, page_bytes, 2 * 288));
    let (mut dead, mut reports, mut state) = (vec![0_u32; BLOCKS as usize], 0_usize, 1_u32);
    let mut gone = BTreeSet::new();
    while reports < 100_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let ppn = (state >> 8) % (BLOCKS * pages_per_block);
        if !gone.insert(ppn) {
            continue;
        }
        reports += 1;
        memory.seq += 1;
        store.invalidate(&mut memory, Ppn(ppn)).unwrap();
        dead[(ppn / pages_per_block) as usize] += 1;
        while dead.iter().sum::<u32>() >= 288 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let victim = (state >> 8) % BLOCKS;
            let seq = memory.seq;
            store.erased(&mut memory, BlockId(victim), seq).unwrap();
            dead[victim as usize] = 0;
            gone.retain(|page| page / pages_per_block != victim);
        }
    }
    let written = memory.pages.len() as f64 / (reports as f64 / f64::from(per_page));
    assert!((1.03..2.0).contains(&written), "{written} programs for each page of new entries");
}

/// A page holds the time since its first entry in sixteen bits.
#[test]
fn a_log_begins_another_page_when_its_buffer_is_too_old() {
    let (mut memory, mut store) = (Memory::new(512), log(64, 512, 1000));
    let begun = memory.seq;
    for (ppn, since, pages) in [(1, 0, 0), (2, 0xFFFF, 0), (3, 0x1_0000, 1), (4, 0x1_0001, 1), (5, 0x3_0000, 2)] {
        memory.seq = begun + since;
        store.invalidate(&mut memory, Ppn(ppn)).unwrap();
        assert_eq!(memory.pages.len(), pages, "after {since}");
    }
    let mut found = PageSet::new(64);
    store.query(&mut memory, BlockId(0), &mut found).unwrap();
    assert!((0..64).all(|offset| found.contains(offset) == (1..6).contains(&offset)));
}

#[test]
fn a_log_whose_positions_do_not_fit_is_refused() {
    let options = LogOptions { blocks: 1 << 22, pages_per_block: 1 << 9, page_bytes: 4096, entries: 0, reports: 1 };
    assert!(ValidityLog::new(options).is_ok());
    assert!(ValidityLog::new(LogOptions { entries: 1 << 32, ..options }).is_err());
}
