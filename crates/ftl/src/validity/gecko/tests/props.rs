//! Any sequence of reports, queries, relocations and power cuts, on any geometry, against sets of
//! pages.

use super::store::MemStore;
use crate::config::GeckoOptions;
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::validity::gecko::Gecko;
use crate::validity::gecko::format::PageName;
use crate::validity::{MetaStore, PageSet, Validity};
use nand::{BlockId, NandError, Ppn};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

/// The dead pages of each block.
type Model = Vec<BTreeSet<u32>>;

#[derive(Clone, Copy, Debug)]
enum Step {
    Invalidate(u32),
    Erase(u32),
    Query(u32),
    Flush,
    /// A collector moves a live page; the copy before it may have been torn.
    Relocate(u32, bool),
    /// Discarded pages are erased.
    Sweep,
    /// Power is lost at this program of the next flush, for good.
    Crash(u32, bool),
}

pub(super) struct Rig {
    pub gecko: Gecko,
    pub store: MemStore,
    pub options: GeckoOptions,
    /// What was reported.
    pub now: Model,
    /// What was reported before the last flush.
    pub durable: Model,
    /// Whether every flush is also cut at each of its programs, and recovered from when it is done.
    pub cut_everywhere: bool,
}

impl Rig {
    pub fn new(page_bytes: usize, blocks: u32, pages_per_block: u32, options: GeckoOptions) -> Self {
        let empty = vec![BTreeSet::new(); blocks as usize];
        Self {
            gecko: Gecko::new(page_bytes, blocks, pages_per_block, &options).unwrap(),
            store: MemStore::new(page_bytes, blocks, pages_per_block),
            options,
            now: empty.clone(),
            durable: empty,
            cut_everywhere: true,
        }
    }

    /// Runs a report, and checks what it cost and, if it flushed, what power loss at any point of
    /// it would leave.
    fn report(&mut self, report: impl Fn(&mut Gecko, &mut MemStore) -> Result<(), FtlError>) {
        let before = self.cut_everywhere.then(|| (self.gecko.clone(), self.store.clone()));
        let (programs, flushes, next_seq) = (self.store.programs, self.gecko.flushes(), self.store.next_seq());
        report(&mut self.gecko, &mut self.store).unwrap();
        let programs = self.store.programs - programs;
        assert!(programs <= u64::from(self.gecko.reserve_pages()), "{programs} pages in one call");
        assert!(self.store.live_max <= self.gecko.footprint_pages(), "{} pages live", self.store.live_max);
        let flushed = self.gecko.flushes() - flushes;
        if programs == 0 {
            assert_eq!(flushed, 0);
            return;
        }
        if self.is_spread() {
            assert!(flushed <= 1);
        } else {
            assert_eq!((flushed, self.gecko.last_flush_seq()), (1, next_seq));
        }
        assert_eq!(self.gecko.live_pages().count(), self.store.live as usize);
        let durable = self.durable.clone();
        if flushed > 0 {
            self.durable = self.now.clone();
        }
        let Some(before) = before else { return };
        for (after, tear) in (0..programs as u32).flat_map(|after| [(after, false), (after, true)]) {
            let (gecko, store) = before.clone();
            self.cut(gecko, store, &durable, &report, after, tear);
        }
        self.check_recovery();
    }

    /// Loses power in the report after so many programs, and recovers.
    fn cut(
        &self,
        mut gecko: Gecko,
        mut store: MemStore,
        durable: &Model,
        report: &impl Fn(&mut Gecko, &mut MemStore) -> Result<(), FtlError>,
        after: u32,
        tear: bool,
    ) -> (Gecko, MemStore, bool) {
        (store.cut_after, store.tear) = (Some(after), tear);
        let (first, flushes) = (store.next_seq(), gecko.flushes());
        assert_eq!(report(&mut gecko, &mut store), Err(NandError::PowerLost.into()));
        let whole = store.scan().into_iter().filter(|(_, s)| s.seq >= first && s.seq < first + u64::from(after));
        let complete = whole.into_iter().any(|(_, spare)| PageName::of(&spare).last);
        let (gecko, store) = self.recovered(store);
        // The last page of a merge that is spread says nothing that was not durable.
        let flushed = complete && (!self.is_spread() || gecko.flushes() > flushes);
        self.check_answers(&gecko, &store, if flushed { &self.now } else { durable });
        (gecko, store, flushed)
    }

    fn recovered(&self, mut store: MemStore) -> (Gecko, MemStore) {
        store.recovering = true;
        let pages = store.scan();
        let gecko = Gecko::recover(&mut store, &self.options, pages).unwrap();
        store.set_live(gecko.live_pages());
        (gecko, store)
    }

    pub fn is_spread(&self) -> bool {
        self.options.spread_ops > 0
    }

    /// Loses power and recovers: what was reported since the last flush is forgotten.
    pub fn lose_power(&mut self) {
        (self.gecko, self.store) = self.recovered(self.store.clone());
        self.now = self.durable.clone();
    }

    /// The store as recovered now has the runs that the live one has, and says what was flushed.
    fn check_recovery(&self) {
        let (gecko, store) = self.recovered(self.store.clone());
        if !self.is_spread() {
            assert_eq!(gecko.directory.runs(), self.gecko.directory.runs());
            assert!(gecko.live_pages().eq(self.gecko.live_pages()));
        }
        assert_eq!(gecko.flushes(), self.gecko.flushes());
        assert_eq!(gecko.last_flush_seq(), self.gecko.last_flush_seq());
        self.check_answers(&gecko, &store, &self.durable);
    }

    /// Every query, and the scan of all blocks, says what the model says.
    fn check_answers(&self, gecko: &Gecko, store: &MemStore, model: &Model) {
        let (mut gecko, mut store) = (gecko.clone(), store.clone());
        for (block, expected) in model.iter().enumerate() {
            let mut dead = PageSet::new(store.pages_per_block);
            gecko.query(&mut store, BlockId(block as u32), &mut dead).unwrap();
            assert_eq!(&members(&dead, store.pages_per_block), expected, "block {block}");
        }
        let pages_per_block = store.pages_per_block;
        let mut scanned = vec![BTreeSet::new(); model.len()];
        gecko
            .for_each_block(&mut store, Purpose::Recovery, |block, dead| {
                scanned[block.index()] = members(dead, pages_per_block);
            })
            .unwrap();
        assert_eq!(&scanned, model);
    }

    pub fn invalidate(&mut self, ppn: u32) {
        self.report(|gecko, store| gecko.invalidate(store, Ppn(ppn)));
        let (block, offset) = (ppn / self.store.pages_per_block, ppn % self.store.pages_per_block);
        self.now[block as usize].insert(offset);
    }

    pub fn erase(&mut self, block: u32) {
        self.report(|gecko, store| gecko.erased(store, BlockId(block), 0));
        self.now[block as usize].clear();
    }

    pub fn flush(&mut self) {
        self.report(|gecko, store| gecko.flush(store));
    }

    pub fn check(&self) {
        self.check_answers(&self.gecko, &self.store, &self.now);
    }

    fn step(&mut self, step: Step) {
        let blocks = self.store.blocks;
        match step {
            Step::Invalidate(number) => self.invalidate(number % (blocks * self.store.pages_per_block)),
            Step::Erase(number) => self.erase(number % blocks),
            Step::Flush => self.flush(),
            Step::Sweep => self.store.sweep(),
            Step::Query(number) => {
                let block = number % blocks;
                let mut dead = PageSet::new(self.store.pages_per_block);
                self.gecko.query(&mut self.store, BlockId(block), &mut dead).unwrap();
                assert_eq!(members(&dead, self.store.pages_per_block), self.now[block as usize]);
            }
            Step::Relocate(number, torn_before) => {
                let live: Vec<_> = self.gecko.live_pages().collect();
                if live.is_empty() {
                    return;
                }
                let from = live[number as usize % live.len()];
                let spare = self.store.spare(from);
                assert!(self.gecko.owns(from, &spare));
                if torn_before {
                    self.store.relocate(from, true);
                    self.check_recovery();
                }
                let to = self.store.relocate(from, false);
                self.gecko.moved(from, to, &spare);
                assert!(!self.gecko.owns(from, &spare) && self.gecko.owns(to, &spare));
                self.check_recovery();
            }
            Step::Crash(after, tear) => self.crash(after, tear),
        }
    }

    /// Loses power in a flush and goes on with what is recovered.
    fn crash(&mut self, after: u32, tear: bool) {
        let (mut gecko, mut store) = (self.gecko.clone(), self.store.clone());
        gecko.flush(&mut store).unwrap();
        let programs = (store.programs - self.store.programs) as u32;
        if programs == 0 {
            return;
        }
        let (gecko, store) = (self.gecko.clone(), self.store.clone());
        let flush = |gecko: &mut Gecko, store: &mut MemStore| gecko.flush(store);
        let (gecko, store, flushed) = self.cut(gecko, store, &self.durable, &flush, after % programs, tear);
        if flushed {
            self.durable = self.now.clone();
        }
        self.now = self.durable.clone();
        (self.gecko, self.store) = (gecko, store);
    }
}

fn members(set: &PageSet, pages: u32) -> BTreeSet<u32> {
    (0..pages).filter(|&offset| set.contains(offset)).collect()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        60 => any::<u32>().prop_map(Step::Invalidate),
        8 => any::<u32>().prop_map(Step::Erase),
        4 => any::<u32>().prop_map(Step::Query),
        1 => Just(Step::Flush),
        1 => (any::<u32>(), any::<bool>()).prop_map(|(page, torn)| Step::Relocate(page, torn)),
        1 => Just(Step::Sweep),
        1 => (any::<u32>(), any::<bool>()).prop_map(|(after, tear)| Step::Crash(after, tear)),
    ];
    prop::collection::vec(step, 1..600)
}

/// Page bytes, blocks, pages in a block: pages so short that a few reports make a level, and common
/// ones.
const GEOMETRIES: [(usize, u32, u32); 8] = [
    (512, 16, 8),
    (128, 16, 8),
    (128, 64, 128),
    (128, 33, 31),
    (160, 50, 100),
    (160, 21, 133),
    (512, 64, 256),
    (256, 300, 64),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn agrees_with_sets_of_pages_through_power_cuts(
        geometry in prop::sample::select(&GEOMETRIES[..]),
        size_ratio in 2_u32..6,
        partitions in prop_oneof![Just(0_u32), 1_u32..10, Just(32_u32)],
        multi_way in any::<bool>(),
        beyond in prop_oneof![Just((1, false, 0)), (1_u32..5, any::<bool>(), prop::sample::select(vec![0, 64, 4096]))],
        spread_ops in prop_oneof![Just(0_u32), 1_u32..6],
        sweep_at_once in any::<bool>(),
        steps in steps(),
    ) {
        let (page_bytes, blocks, pages_per_block) = geometry;
        let (buffer_pages, packed, filter_bytes) = beyond;
        let multi_way = multi_way || spread_ops > 0;
        let options =
            GeckoOptions { size_ratio, partitions, multi_way, buffer_pages, packed, filter_bytes, spread_ops };
        let mut rig = Rig::new(page_bytes, blocks, pages_per_block, options);
        rig.store.sweep_at_once = sweep_at_once;
        for step in steps {
            rig.step(step);
        }
        rig.check();
    }
}
