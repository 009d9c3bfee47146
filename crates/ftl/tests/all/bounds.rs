//! No request does more than its FTL's row says, and no row says far more than what is seen.
//!
//! Every row is run on devices of several shapes, under requests of several kinds, from an empty
//! disk until it is old. `docs/BOUNDS.md` says what was promised and seen. `OPENFTL_RENEW=1` writes
//! it anew.

#![allow(clippy::unwrap_used)]

use super::{capabilities, one_die};
use ftl::ftls::{Entry, Info};
use ftl::{Bound, Config, Counts, Flash, FtlError, Most, Op, OpKind, Purpose, Setting};
use nand::{Geometry, Lpn, Ppn, SimNand, Stamp};
use openftl_ftl as ftl;
use std::fmt::Write as _;
use std::path::Path;

/// How much more than the longest write seen a bound may be, where it is closest.
const SLACK: f64 = 4.0;

/// A device, and the disk on it.
#[derive(Clone, Copy)]
struct Shape {
    blocks: u32,
    pages_per_block: u32,
    page_bytes: u32,
    /// Logical pages, percent of all pages.
    percent: u32,
    cache_entries: u32,
    /// Ways of the sets of the cache; 0 for one list.
    cache_ways: u32,
}

const fn shape(blocks: u32, pages_per_block: u32, page_bytes: u32, percent: u32, cache_entries: u32) -> Shape {
    Shape { blocks, pages_per_block, page_bytes, percent, cache_entries, cache_ways: 0 }
}

/// From blocks of 4 pages to blocks of 64, from disks that are nearly empty to disks that are
/// nearly full.
const SHAPES: [Shape; 11] = [
    shape(400, 4, 512, 70, 64),
    shape(1000, 4, 512, 40, 64),
    shape(240, 8, 512, 20, 64),
    shape(160, 16, 512, 35, 64),
    shape(240, 16, 512, 75, 64),
    shape(120, 64, 1024, 20, 256),
    shape(120, 64, 1024, 70, 256),
    shape(400, 32, 2048, 30, 400),
    shape(240, 8, 4096, 5, 64),
    shape(120, 64, 4096, 20, 64),
    shape(120, 64, 4096, 1, 64),
];

impl Shape {
    fn geometry(&self) -> Geometry {
        one_die(self.blocks, self.pages_per_block, self.page_bytes)
    }

    fn config(&self) -> Config {
        let logical_pages = self.blocks * self.pages_per_block * self.percent / 100;
        Config { cache_entries: self.cache_entries, cache_ways: self.cache_ways, ..Config::new(logical_pages) }
    }

    fn words(&self) -> String {
        let Self { blocks, pages_per_block, page_bytes, percent, .. } = self;
        format!("{blocks} blocks of {pages_per_block} pages of {page_bytes} B, {percent}% full")
    }
}

/// What the host writes once the disk is full.
#[derive(Clone, Copy, Debug)]
enum Load {
    Uniform,
    Skewed,
    Sequential,
    Strided,
    OnePage,
    /// Pages of whatever block most lives in, so that all blocks are about as full: the worst that
    /// a collector can meet.
    Levelling,
    /// Uniform, with trims of single pages and of several blocks, and flushes.
    Trims,
}

const LOADS: [Load; 7] =
    [Load::Uniform, Load::Skewed, Load::Sequential, Load::Strided, Load::OnePage, Load::Levelling, Load::Trims];

fn since(now: &Counts, before: &Counts) -> Most {
    let ops = now.since(before).total();
    Most { reads: ops.reads + ops.spare_reads, programs: ops.programs, erases: ops.erases }
}

fn within(seen: Most, bound: Most) -> bool {
    seen.reads <= bound.reads && seen.programs <= bound.programs && seen.erases <= bound.erases
}

/// Runs requests, holds each to `bound`, and answers the most that a write did.
fn run(entry: &Entry<SimNand>, shape: &Shape, load: Load, bound: Option<&Bound>) -> Result<Most, FtlError> {
    let config = shape.config();
    let flash = Flash::new(SimNand::new(shape.geometry(), capabilities(&entry.info)));
    let mut ftl = (entry.format)(flash, &config)?;
    let hold = |seen: Most, most: &dyn Fn(&Bound) -> Most, what: &str| {
        if let Some(bound) = bound {
            let (name, most) = (entry.info.name, most(bound));
            assert!(within(seen, most), "{name}: {what} did {seen:?}, at most {most:?}; {}, {load:?}", shape.words());
        }
    };
    let mut state = 17_u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((u64::from(state >> 4) * u64::from(below)) >> 28) as u32
    };
    let (logical, mut longest) = (config.logical_pages, Most::NONE);
    let mut places = Places::new(shape.geometry(), logical);
    ftl.flash_mut().set_logging(matches!(load, Load::Levelling));
    for step in 0..(6 * logical).max(2 * shape.geometry().pages()) {
        let lpn = match load {
            _ if step < logical => step,
            Load::Uniform | Load::Trims => random(logical),
            Load::Skewed => {
                let mut among = logical;
                while among > 8 && random(10) < 8 {
                    among /= 4;
                }
                random(among)
            }
            Load::Sequential => step % logical,
            Load::Strided => (u64::from(step) * u64::from(5 * shape.pages_per_block + 1) % u64::from(logical)) as u32,
            Load::OnePage => 3,
            Load::Levelling => places.in_fullest(),
        };
        let before = *ftl.flash().counts();
        ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: (step % 60_000) as u16 + 1 })?;
        let seen = since(ftl.flash().counts(), &before);
        hold(seen, &|bound| bound.write, "a write");
        longest = longest.or(seen);
        places.follow(lpn, ftl.flash_mut().drain_log());
        if step < logical || step % 5 != 0 {
            continue;
        }
        let before = *ftl.flash().counts();
        ftl.read(Lpn(random(logical)), &mut Stamp::UNWRITTEN.clone())?;
        hold(since(ftl.flash().counts(), &before), &|bound| bound.read, "a read");
        if matches!(load, Load::Trims) {
            let lpn = random(logical);
            let count = if step % 3 == 0 { 1 + random(3 * shape.pages_per_block) } else { 1 }.min(logical - lpn);
            let before = *ftl.flash().counts();
            ftl.trim(Lpn(lpn), count)?;
            hold(since(ftl.flash().counts(), &before), &|bound| bound.trim(count), "a trim");
            if step % 100 == 0 {
                let before = *ftl.flash().counts();
                ftl.flush()?;
                hold(since(ftl.flash().counts(), &before), &|bound| bound.flush, "a flush");
            }
        }
    }
    Ok(longest)
}

/// Where each logical page is, by what the device was told to do.
struct Places {
    geometry: Geometry,
    lpn_at: Vec<u32>,
    at: Vec<u32>,
    live: Vec<u32>,
}

/// No page.
const NOWHERE: u32 = u32::MAX;

impl Places {
    fn new(geometry: Geometry, logical: u32) -> Self {
        let pages = geometry.pages() as usize;
        let (lpn_at, at) = (vec![NOWHERE; pages], vec![NOWHERE; logical as usize]);
        Self { geometry, lpn_at, at, live: vec![0; geometry.blocks() as usize] }
    }

    fn put(&mut self, lpn: u32, at: u32) {
        let before = std::mem::replace(&mut self.at[lpn as usize], at);
        if before != NOWHERE {
            self.lpn_at[before as usize] = NOWHERE;
            self.live[self.geometry.block_of(Ppn(before)).index()] -= 1;
        }
        self.lpn_at[at as usize] = lpn;
        self.live[self.geometry.block_of(Ppn(at)).index()] += 1;
    }

    /// Follows what was done while `lpn` was written.
    fn follow(&mut self, lpn: u32, ops: impl Iterator<Item = Op>) {
        for op in ops {
            match op.kind {
                OpKind::Program if op.purpose == Purpose::Host => self.put(lpn, op.page.0),
                OpKind::Copy if self.lpn_at[op.from.index()] != NOWHERE => {
                    self.put(self.lpn_at[op.from.index()], op.page.0);
                }
                _ => {}
            }
        }
    }

    /// A page of the block in which most lives.
    fn in_fullest(&self) -> u32 {
        let fullest = (0..self.geometry.blocks()).max_by_key(|block| self.live[*block as usize]).unwrap();
        let pages = self.geometry.pages_per_block();
        let mut offsets = (fullest * pages..(fullest + 1) * pages).map(|page| self.lpn_at[page as usize]);
        offsets.find(|lpn| *lpn != NOWHERE).unwrap()
    }
}

/// What was seen of a row on one device, and what it promises there.
struct Outcome {
    seen: Most,
    bound: Option<Most>,
}

impl Outcome {
    /// Pages programmed in the longest write, and at most.
    fn words(&self) -> String {
        let bound = self.bound.map_or_else(|| "–".to_owned(), |bound| bound.programs.to_string());
        format!("{} / {bound}", self.seen.programs)
    }
}

/// Runs a row on every device; `None` where the device is too small for it.
fn outcomes(entry: &Entry<SimNand>) -> Vec<Option<Outcome>> {
    let outcome = |shape: &Shape| {
        let bound = entry.info.bound(&shape.geometry(), &shape.config());
        let mut seen = Most::NONE;
        for load in LOADS {
            match run(entry, shape, load, bound.as_ref()) {
                Ok(longest) => seen = seen.or(longest),
                Err(FtlError::Unsupported { .. }) => return None,
                Err(error) => panic!("{} on {}, {load:?}: {error}", entry.info.name, shape.words()),
            }
        }
        Some(Outcome { seen, bound: bound.map(|bound| bound.write) })
    };
    SHAPES.iter().map(outcome).collect()
}

/// A bound that nothing comes near says nothing: on some device it is close to what was seen.
fn check_closest(info: &Info, outcomes: &[Option<Outcome>]) {
    let bounded = outcomes.iter().flatten().filter_map(|outcome| outcome.bound.map(|bound| (outcome.seen, bound)));
    let ratio = |(seen, bound): (Most, Most)| bound.programs as f64 / seen.programs as f64;
    match bounded.map(ratio).min_by(f64::total_cmp) {
        Some(ratio) => assert!(ratio <= SLACK, "{}: the bound is {ratio} times what is seen", info.name),
        None => assert!(info.bound.programs == NONE, "{} has a formula and no bound on any device", info.name),
    }
}

/// What a row says that promises nothing.
const NONE: &str = "none";

const INTRODUCTION: &str = "\
# What one request does at most

Written by `cargo xtask docs` from the table in `crates/ftl/src/ftls/mod.rs` and from what a test saw. The derivations stand in
`crates/ftl/src/engine/page/bound.rs` and `crates/ftl/src/engine/log_block/bound.rs`; the test holds every write, read, trim and
flush to its bound.

A bound holds while no operation fails, no page is about to fade and no wear is levelled. Page-mapped FTLs have one with one lane,
a victim policy that picks the block with the fewest live pages, and a placement without queues. After power loss GeckoFTL reads
more until entries that its mount left uncertain are synchronised.

| symbol | meaning |
|---|---|
| B, K | pages of a block, blocks of the device |
| v | live pages of a victim: all that lives, spread evenly over the fewest closed blocks |
| d | blocks that are missing when a write begins: those that the request before opened |
| n | collections in one write: the smallest n that frees d blocks more than it opens |
| U | entries that change: 1 + n·v |
| C, T, r | entries of the cache, translation pages, entries of the ring of recent updates |
| h, i | levels of the tree, its inner nodes |
| f, F, a | flushes of the store, pages of one that merges all levels, pages that are copied since they are alone in their blocks |
| t | pages of the trim map |
| c | pages of a checkpoint of all maps and one that says that they are complete: they grow with K |
| N | logical blocks of a group, a set or a superblock |

Where there is no such n, collecting may take as many blocks as it frees, and nothing is promised but that the collector gives up
after 4·K collections. The disk has to be so empty that v pages and the metadata for them fit a block. The longest writes seen on
fuller disks are finite; how long they can be depends on the requests and on K.

A read of an FTL with its table in RAM is one read. Where a read can change the cache, it may do what a write does and one read
more. A trim of m pages does at most what m writes do. A flush of an FTL with log blocks is two checkpoints, of page mapping t times
a write, of the others nothing.

";

/// The document: formulas, and what was seen.
fn document(rows: &[(Info, Vec<Option<Outcome>>)]) -> String {
    let mut out = String::from(INTRODUCTION);
    out.push_str("| FTL | pages programmed in a write, at most | the longest write |\n|---|---|---|\n");
    for (info, _) in rows {
        writeln!(out, "| `{}` | {} | {} |", info.name, info.bound.programs, info.bound.longest).unwrap();
    }
    out.push_str(
        "\nPages programmed in the longest write seen / the bound; – where nothing is promised, empty where the device is too \
         small. Requests are uniform, skewed, in sequence, strided, of one page, with trims, and such that all blocks are equally \
         full, which is the worst for a collector. The devices:\n\n",
    );
    for (number, shape) in (1..).zip(SHAPES) {
        writeln!(out, "{number}. {}, C = {}", shape.words(), shape.cache_entries).unwrap();
    }
    let numbers = (1..=SHAPES.len()).map(|number| format!(" {number} |")).collect::<String>();
    writeln!(out, "\n| FTL |{numbers}\n|---|{}", "--:|".repeat(SHAPES.len())).unwrap();
    for (info, outcomes) in rows {
        let cells =
            outcomes.iter().map(|outcome| format!(" {} |", outcome.as_ref().map_or_else(String::new, Outcome::words)));
        writeln!(out, "| `{}` |{}", info.name, cells.collect::<String>()).unwrap();
    }
    out
}

#[test]
fn no_request_does_more_than_its_row_says_and_some_come_near() {
    let rows: Vec<_> = table::table::<SimNand>().iter().map(|entry| (entry.info, outcomes(entry))).collect();
    rows.iter().for_each(|(info, outcomes)| check_closest(info, outcomes));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/BOUNDS.md");
    let now = document(&rows);
    if std::env::var_os("OPENFTL_RENEW").is_some() {
        return std::fs::write(file, now).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap();
    let differ = found.lines().zip(now.lines()).find(|(found, now)| found != now);
    assert_eq!(differ.map(|(found, _)| found), differ.map(|(_, now)| now), "run `cargo xtask docs`");
    assert_eq!(found, now, "run `cargo xtask docs`");
}

/// One entry leaves for each that comes, in whatever set it is.
#[test]
fn a_cache_in_sets_takes_no_more_than_one_in_a_list() {
    for entry in table::table::<SimNand>().iter().filter(|entry| entry.info.honours(Setting::CacheWays)) {
        for (shape, cache_ways) in [(SHAPES[0], 4), (SHAPES[2], 2), (SHAPES[5], 16)] {
            let shape = Shape { cache_ways, ..shape };
            let bound = entry.info.bound(&shape.geometry(), &shape.config());
            for load in LOADS {
                match run(entry, &shape, load, bound.as_ref()) {
                    Ok(seen) => assert!(seen.programs > 0),
                    Err(FtlError::Unsupported { .. }) => {}
                    Err(error) => panic!("{} on {}, {load:?}: {error}", entry.info.name, shape.words()),
                }
            }
        }
    }
}

/// A victim of a disk with metadata is looked at page by page, however little metadata there is;
/// of one without, two spare areas are read.
#[test]
fn one_page_of_the_table_is_enough_for_victims_to_be_looked_at() {
    let shape = shape(120, 64, 4096, 1, 64);
    assert!(shape.config().logical_pages * 4 <= shape.page_bytes, "one translation page");
    let rows = table::table::<SimNand>();
    let of = |name: &str| {
        let entry = rows.iter().find(|entry| entry.info.name == name).unwrap();
        entry.info.bound(&shape.geometry(), &shape.config()).unwrap().write
    };
    let (page, dftl) = (of("page"), of("dftl"));
    // Nothing lives in a victim, and two erases are of blocks that are opened.
    assert_eq!(page.reads, 2 * (page.erases - 2), "a victim without metadata is looked at for its wear: {page:?}");
    let victims = page.erases.min(dftl.erases) / 2;
    let looked_at = victims * u64::from(shape.pages_per_block);
    assert!(dftl.reads >= page.reads + looked_at, "{dftl:?} against {page:?}, {victims} victims");
}
