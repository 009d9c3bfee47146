//! A file-system benchmark after PostMark (Katcher, Network Appliance TR-3022, 1997), on the file
//! system that [`crate::filesystem`] models.
//!
//! A round creates a pool of files, runs transactions on it, and deletes what is left, the oldest
//! first; then the next begins. A transaction creates or deletes a file, and reads a whole file or
//! appends to one. As in PostMark a new size is uniform between two bounds, an append is of one
//! byte up to what the upper bound leaves, and all files are alike likely. PostMark's defaults are
//! the defaults: 500 B to 10,000 B, half creations, half reads, a transaction for each file (its
//! reads and writes of 512 B meet in a page cache, so whole blocks are read and written). How many
//! files there are follows from the part of the space that they are to fill.
//!
//! The defaults of the file system are what Linux 6.18 does at 400 operations a second: it commits
//! every 5 s, `mkfs.ext3` gives the journal 32 MiB of 1 GiB, and all of the data fits the page
//! cache. Measured with 25,000 files, 200,000 transactions and inodes of 128 bytes on 512 MiB, as
//! blocks of 4 KiB from the device's own count and the journal's (`/proc/fs/jbd2`), beside this
//! workload with `block=4KiB,fill=36,transactions=8`:
//!
//! | operations a commit | ext3 | of them journal | here | of them journal |
//! |---|---|---|---|---|
//! | 2000 (`commit=1`, 2000 a second) | 397,636 | 25.6% | 426,873 | 23.2% |
//! | 5000 (1000 a second) | 351,861 | 12.2% | 333,276 | 12.8% |
//!
//! Inodes of 256 bytes, today's default, fill the journal before a commit is due: 37% of 491,245.
//!
//! Where a creation finds no room a file is deleted instead, where a deletion finds no file one is
//! created, and an append without room is left out.

use super::{Room, WorkloadEntry};
use crate::error::WorkloadError;
use crate::filesystem::{BLOCKS_MAX, File, FileSystem, Format, Piece};
use crate::param::{Kind, Parameter, Size};
use crate::pick::{Chance, Rng};
use crate::request::{Op, Request, Source};
use crate::spec::Spec;

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "postmark",
    summary: "files created, read, appended to and deleted on a modelled ext3, as PostMark does",
    parameters: PARAMETERS,
    common: Some(&["flush", "rate", "footprint"]),
    example: "postmark:fill=75,transactions=10",
    check,
    build,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "fill",
        unit: "%-%",
        default: Some("75"),
        meaning: "part of the data blocks in files at the start of each round; repeated for ever",
        kind: Kind::Shares,
    },
    Parameter {
        name: "smallest",
        unit: "bytes",
        default: Some("500"),
        meaning: "least size of a new file",
        kind: Kind::Bytes,
    },
    Parameter {
        name: "largest",
        unit: "bytes",
        default: Some("10000"),
        meaning: "largest size of a file",
        kind: Kind::Bytes,
    },
    Parameter {
        name: "create",
        unit: "%",
        default: Some("50"),
        meaning: "share of transactions that create a file; the others delete one",
        kind: Kind::Percent,
    },
    Parameter {
        name: "read",
        unit: "%",
        default: Some("50"),
        meaning: "share of transactions that read a file; the others append to one",
        kind: Kind::Percent,
    },
    Parameter {
        name: "transactions",
        unit: "per file",
        default: None,
        meaning: "transactions of a round for each file of its pool; 1 if not given",
        kind: Kind::Number(0.0, 1e6),
    },
    Parameter {
        name: "writes",
        unit: "blocks",
        default: None,
        meaning: "instead: deletion of what is left begins after each so many blocks written, metadata included",
        kind: Kind::Count(1, u64::MAX >> 1),
    },
    Parameter {
        name: "trim",
        unit: "0|1",
        default: Some("0"),
        meaning: "1: blocks of deleted files are trimmed",
        kind: Kind::Count(0, 1),
    },
    Parameter {
        name: "block",
        unit: "bytes",
        default: Some("page"),
        meaning: "block of the file system",
        kind: Kind::Bytes,
    },
    Parameter {
        name: "journal",
        unit: "%",
        default: Some("3.125"),
        meaning: "part of the footprint for the journal, at least 16 blocks; 0 for none",
        kind: Kind::Percent,
    },
    Parameter {
        name: "commit",
        unit: "operations",
        default: Some("2000"),
        meaning: "files created, transactions and files deleted from one commit of metadata to the next, at most",
        kind: Kind::Count(1, 1_000_000),
    },
    Parameter {
        name: "cache",
        unit: "%",
        default: Some("100"),
        meaning: "part of the footprint that fits the page cache; 0 for none",
        kind: Kind::Percent,
    },
];

/// Least block, a sector: an inode, a directory entry and a descriptor fit into it.
const BLOCK_MIN: u64 = 512;

fn check(spec: &Spec) -> Result<(), WorkloadError> {
    if let (Some(Size::Bytes(smallest)), Some(Size::Bytes(largest))) = (spec.size("smallest"), spec.size("largest"))
        && smallest > largest
    {
        return Err(spec.contradiction(format!("smallest={smallest} B is above largest={largest} B")));
    }
    if spec.count("writes").is_some() && spec.number("transactions").is_some() {
        return Err(spec.contradiction("transactions and writes both say when a round ends; drop one"));
    }
    Ok(())
}

fn build(spec: &Spec, room: Room) -> Result<Box<dyn Source>, WorkloadError> {
    Ok(Box::new(PostMark::new(spec, room)?))
}

/// The value of an option in percent, as a share.
fn share(spec: &Spec, option: &str, otherwise: f64) -> f64 {
    spec.number(option).unwrap_or(otherwise) / 100.0
}

/// Bounds of the sizes of files, and the file system for such files.
fn format(spec: &Spec, room: Room) -> Result<(u64, u64, Format), WorkloadError> {
    let bytes_of = |option, otherwise| spec.size(option).map_or(otherwise, |size| size.bytes(room.page_bytes));
    let (smallest, largest) = (bytes_of("smallest", 500), bytes_of("largest", 10_000));
    if smallest > largest {
        return Err(spec.unfit(format!("smallest of {smallest} B is above largest of {largest} B")));
    }
    let block_bytes = bytes_of("block", u64::from(room.page_bytes));
    if block_bytes < BLOCK_MIN {
        return Err(spec.unfit(format!("a block of {block_bytes} B is too small; set block to {BLOCK_MIN} B or more")));
    }
    let footprint = share(spec, "footprint", 100.0);
    let whole = footprint >= 1.0;
    let limit = if whole { room.logical_bytes } else { (room.logical_bytes as f64 * footprint) as u64 };
    let blocks = limit / block_bytes;
    if blocks > BLOCKS_MAX {
        return Err(spec.unfit(format!(
            "its footprint has {blocks} blocks of {block_bytes} B and {BLOCKS_MAX} are the most; lower footprint or raise block"
        )));
    }
    let mean = (smallest / 2 + largest / 2) as f64 / block_bytes as f64 + 0.5;
    let mean_file_blocks = mean.clamp(smallest.div_ceil(block_bytes) as f64, largest.div_ceil(block_bytes) as f64);
    let (journal, cache) = (share(spec, "journal", 3.125), share(spec, "cache", 100.0));
    let (commit, trim) = (spec.count("commit").unwrap_or(2000), spec.count("trim") == Some(1));
    Ok((smallest, largest, Format { blocks, block_bytes, mean_file_blocks, journal, commit, cache, trim }))
}

/// The files there are, and what is to be done to them.
struct Pool {
    system: FileSystem,
    files: Vec<File>,
    smallest: u64,
    largest: u64,
    rng: Rng,
    pieces: Vec<Piece>,
}

impl Pool {
    fn any(&mut self) -> Option<usize> {
        (!self.files.is_empty()).then(|| self.rng.below(self.files.len() as u64) as usize)
    }

    /// A size for a new file.
    fn size(&mut self) -> u64 {
        self.smallest + self.rng.below(self.largest - self.smallest + 1)
    }

    /// Creates a file; false without room.
    fn create(&mut self, bytes: u64) -> bool {
        let file = self.system.create(bytes, &mut self.pieces);
        self.files.extend(file);
        file.is_some()
    }

    /// Deletes a file; false if there is none.
    fn delete(&mut self) -> bool {
        let Some(at) = self.any() else { return false };
        let file = self.files.swap_remove(at);
        self.system.delete(file, &mut self.pieces);
        true
    }

    /// Begins to delete what is left, the oldest files first.
    fn begin_clearing(&mut self) {
        self.files.sort_unstable_by_key(|file| std::cmp::Reverse(file.name));
    }

    /// Deletes the next file; false if there is none.
    fn clear(&mut self) -> bool {
        let file = self.files.pop();
        if let Some(file) = file {
            self.system.delete(file, &mut self.pieces);
        }
        file.is_some()
    }

    fn read(&mut self) {
        if let Some(at) = self.any() {
            self.system.read(&self.files[at], &mut self.pieces);
        }
    }

    fn append(&mut self) {
        let Some(at) = self.any() else { return };
        let file = &mut self.files[at];
        if file.bytes < self.largest {
            let bytes = 1 + self.rng.below(self.largest - file.bytes);
            self.system.append(file, bytes, &mut self.pieces);
        }
    }
}

/// Where in a round it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Create,
    Run,
    Delete,
}

/// When the transactions of a round end.
enum Until {
    /// After so many for each file.
    Transactions { per_file: f64, left: u64 },
    /// When so many blocks are written in all; the next round ends `each` later.
    Written { each: u64, next: u64 },
}

/// When requests come, and flushes between them.
struct Pace {
    flush: u64,
    unflushed: u64,
    gap_ns: Option<f64>,
    now_ns: f64,
    rng: Rng,
}

impl Pace {
    fn new(spec: &Spec, seed: u64) -> Self {
        let gap_ns = spec.number("rate").map(|rate| 1e9 / rate);
        let flush = spec.count("flush").unwrap_or(0);
        Self { flush, unflushed: 0, gap_ns, now_ns: 0.0, rng: Rng::new(seed, 2) }
    }

    fn at_ns(&mut self) -> u64 {
        let at = self.now_ns as u64;
        if let Some(mean) = self.gap_ns {
            self.now_ns += mean * self.rng.exponential();
        }
        at
    }

    fn flush_due(&self) -> bool {
        self.flush != 0 && self.unflushed == self.flush
    }
}

struct PostMark {
    pool: Pool,
    create: Chance,
    read: Chance,
    /// Blocks of the pool of each round.
    targets: Vec<u64>,
    round: usize,
    stage: Stage,
    until: Until,
    pace: Pace,
    /// Pieces handed out.
    done: usize,
    block_bytes: u64,
    description: String,
}

impl PostMark {
    fn new(spec: &Spec, room: Room) -> Result<Self, WorkloadError> {
        let (smallest, largest, format) = format(spec, room)?;
        let Format { blocks, block_bytes, .. } = format;
        let system = FileSystem::new(format).ok_or_else(|| {
            spec.unfit(format!(
                "the file system leaves no block of the footprint's {blocks} of {block_bytes} B for data; lower journal or \
                 choose a larger device"
            ))
        })?;
        let fills = spec.shares("fill").unwrap_or(&[75.0]);
        let targets: Vec<u64> = fills.iter().map(|p| (system.data_blocks() as f64 * p / 100.0) as u64).collect();
        let (least, most) = targets.iter().fold((u64::MAX, 0), |(least, most), t| (least.min(*t), most.max(*t)));
        if system.blocks_of(largest) > least {
            return Err(spec.unfit(format!(
                "a file of largest={largest} B has more blocks than fill gives to all files, {least} of {block_bytes} B"
            )));
        }
        let until = match (spec.count("writes"), spec.number("transactions")) {
            (Some(writes), _) if writes <= most => {
                return Err(
                    spec.unfit(format!("writes={writes} end a round before its pool of {most} blocks is there"))
                );
            }
            (Some(writes), _) => Until::Written { each: writes, next: writes },
            (None, per_file) => Until::Transactions { per_file: per_file.unwrap_or(1.0), left: 0 },
        };
        let description = format!(
            "{} ({blocks} blocks of {block_bytes} B, {} of them for data and {} for the journal; logical space {} B, seed {})",
            spec.full(),
            system.data_blocks(),
            system.journal_blocks(),
            room.logical_bytes,
            room.seed,
        );
        let rng = Rng::new(room.seed, 1);
        Ok(Self {
            pool: Pool { system, files: Vec::new(), smallest, largest, rng, pieces: Vec::new() },
            create: Chance::new(share(spec, "create", 50.0)),
            read: Chance::new(share(spec, "read", 50.0)),
            targets,
            round: 0,
            stage: Stage::Create,
            until,
            pace: Pace::new(spec, room.seed),
            done: 0,
            block_bytes,
            description,
        })
    }

    /// Does the next operation, which may leave nothing to do for the device.
    fn operate(&mut self) {
        match self.stage {
            Stage::Create => {
                let bytes = self.pool.size();
                let used = self.pool.system.used_blocks() + self.pool.system.blocks_of(bytes);
                if used > self.targets[self.round] || !self.pool.create(bytes) {
                    if let Until::Transactions { per_file, left } = &mut self.until {
                        *left = ((*per_file * self.pool.files.len() as f64).round() as u64).max(1);
                    }
                    self.stage = Stage::Run;
                    return;
                }
            }
            Stage::Run => self.transact(),
            Stage::Delete => {
                if !self.pool.clear() {
                    self.round = (self.round + 1) % self.targets.len();
                    self.stage = Stage::Create;
                    return;
                }
            }
        }
        self.pool.system.operated(&mut self.pool.pieces);
    }

    fn transact(&mut self) {
        match self.read.hit(self.pool.rng.next()) {
            true => self.pool.read(),
            false => self.pool.append(),
        }
        let create = self.create.hit(self.pool.rng.next());
        if create || !self.pool.delete() {
            let bytes = self.pool.size();
            if !self.pool.create(bytes) {
                self.pool.delete();
            }
        }
        let over = match &mut self.until {
            Until::Transactions { left, .. } => {
                *left -= 1;
                *left == 0
            }
            Until::Written { each, next } => {
                let over = self.pool.system.written_blocks() >= *next;
                *next += if over { *each } else { 0 };
                over
            }
        };
        if over {
            self.pool.begin_clearing();
            self.stage = Stage::Delete;
        }
    }

    fn draw(&mut self) -> Request {
        if self.pace.flush_due() {
            self.pace.unflushed = 0;
            return Request { at_ns: self.pace.at_ns(), op: Op::Flush, offset: 0, bytes: 0, fua: false };
        }
        while self.done == self.pool.pieces.len() {
            self.pool.pieces.clear();
            self.done = 0;
            self.operate();
        }
        let Piece { op, first, blocks } = self.pool.pieces[self.done];
        self.done += 1;
        self.pace.unflushed += u64::from(op == Op::Write);
        let (offset, bytes) = (u64::from(first) * self.block_bytes, u64::from(blocks) * self.block_bytes);
        Request { at_ns: self.pace.at_ns(), op, offset, bytes, fua: false }
    }
}

impl Source for PostMark {
    fn fill(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError> {
        for request in out.iter_mut() {
            *request = self.draw();
        }
        Ok(out.len())
    }

    fn timed(&self) -> bool {
        self.pace.gap_ns.is_some()
    }

    fn describe(&self) -> String {
        self.description.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(text: &str) -> PostMark {
        let spec: Spec = text.parse().unwrap();
        PostMark::new(&spec, Room { logical_bytes: 32 << 20, page_bytes: 2048, seed: 3, one_pass: false }).unwrap()
    }

    #[test]
    fn sizes_are_uniform_between_the_bounds() {
        let mut source = make("postmark:smallest=1000,largest=9000");
        while source.stage == Stage::Create {
            source.operate();
        }
        let sizes: Vec<u64> = source.pool.files.iter().map(|file| file.bytes).collect();
        assert!(sizes.len() > 3000 && sizes.iter().all(|bytes| (1000..=9000).contains(bytes)));
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        let quarter = sizes.iter().filter(|bytes| **bytes < 3000).count() as f64 / sizes.len() as f64;
        assert!((mean - 5000.0).abs() < 100.0 && (quarter - 0.25).abs() < 0.03, "{mean} {quarter}");
        // The pool has the part of the blocks that was asked for.
        let part = source.pool.system.used_blocks() as f64 / source.pool.system.data_blocks() as f64;
        assert!(part <= 0.75 && part > 0.749, "{part}");
    }

    #[test]
    fn transactions_are_mixed_as_asked_for() {
        // Growth, shrinkage and reading seen from outside: the number of files, their bytes, the
        // pieces.
        for (create, read) in [(50, 50), (70, 20), (20, 90)] {
            let mut source = make(&format!("postmark:fill=50,create={create},read={read},transactions=0.3,cache=0"));
            while source.stage == Stage::Create {
                source.operate();
            }
            let Until::Transactions { left, .. } = source.until else { panic!() };
            assert_eq!(left, (source.pool.files.len() as f64 * 0.3).round() as u64);
            let (before, mut reads, mut all) = (source.pool.files.len() as f64, 0.0, 0.0);
            while source.stage == Stage::Run {
                source.pool.pieces.clear();
                source.operate();
                all += 1.0;
                reads += f64::from(u8::from(source.pool.pieces.iter().any(|piece| piece.op == Op::Read)));
            }
            let grown = (source.pool.files.len() as f64 - before) / all;
            assert_eq!(all as u64, left);
            assert!((grown - (2.0 * f64::from(create) / 100.0 - 1.0)).abs() < 0.1, "{create}: {grown}");
            assert!((reads / all - f64::from(read) / 100.0).abs() < 0.05, "{read}: {}", reads / all);
        }
    }

    #[test]
    fn only_living_data_is_read_and_free_space_never_runs_out() {
        for text in [
            "postmark:fill=100,trim=1,transactions=3,cache=0",
            "postmark:fill=90-10-50,create=90,journal=0",
            "postmark:fill=30,create=0,transactions=4,cache=5",
            "postmark:smallest=1,largest=1MiB,read=80,transactions=20,cache=20",
        ] {
            let mut source = make(text);
            let mut living = vec![false; (32 << 20) / 2048];
            for _ in 0..30_000 {
                source.pool.pieces.clear();
                source.operate();
                let held: u64 = source.pool.files.iter().map(|file| source.pool.system.blocks_of(file.bytes)).sum();
                assert_eq!(held, source.pool.system.used_blocks(), "{text}");
                assert!(held <= source.pool.system.data_blocks(), "{text}");
                for piece in &source.pool.pieces {
                    let blocks = &mut living[piece.first as usize..(piece.first + piece.blocks) as usize];
                    match piece.op {
                        Op::Read => assert!(blocks.iter().all(|alive| *alive), "{text}"),
                        Op::Write => blocks.fill(true),
                        _ => {
                            assert!(blocks.iter().all(|alive| *alive) && text.contains("trim=1"), "{text}");
                            blocks.fill(false);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rounds_follow_each_other_and_end_where_asked() {
        let mut source = make("postmark:fill=90-10,writes=40000");
        let mut ends = Vec::new();
        while ends.len() < 4 {
            let before = (source.stage, source.round);
            source.pool.pieces.clear();
            source.operate();
            match (before.0, source.stage) {
                (Stage::Create, Stage::Run) => {
                    let part = source.pool.system.used_blocks() as f64 / source.pool.system.data_blocks() as f64;
                    let wanted = [0.9, 0.1][source.round];
                    assert!((part - wanted).abs() < 0.001, "{part}");
                }
                (Stage::Run, Stage::Delete) => ends.push(source.pool.system.written_blocks()),
                (Stage::Delete, Stage::Create) => {
                    assert!(source.pool.files.is_empty() && source.round != before.1);
                    assert_eq!(source.pool.system.used_blocks(), 0);
                }
                _ => {}
            }
        }
        for (end, wanted) in ends.iter().zip([40_000, 80_000, 120_000, 160_000]) {
            // Blocks are written by whole commits.
            assert!((wanted..wanted + 3000).contains(end), "{ends:?}");
        }
    }

    /// Blocks written in a round, and how many of them to the journal.
    fn round(text: &str) -> (u64, u64) {
        let spec: Spec = text.parse().unwrap();
        let room = Room { logical_bytes: 512 << 20, page_bytes: 4096, seed: 1, one_pass: false };
        let mut source = PostMark::new(&spec, room).unwrap();
        let mut journal = 0;
        while source.stage != Stage::Delete || !source.pool.files.is_empty() {
            source.pool.pieces.clear();
            source.operate();
            for piece in source.pool.pieces.iter().filter(|piece| piece.op == Op::Write) {
                let blocks = piece.first..piece.first + piece.blocks;
                journal += blocks.filter(|block| source.pool.system.in_journal(*block)).count() as u64;
            }
        }
        (source.pool.system.written_blocks(), journal)
    }

    #[test]
    fn a_round_writes_what_linux_writes() {
        // 25,000 files and 200,000 transactions on 512 MiB.
        let (all, journal) = round("postmark:block=4KiB,fill=36,transactions=8");
        let share = 100.0 * journal as f64 / all as f64;
        assert!((408_000..=440_000).contains(&all) && (21.0..=25.0).contains(&share), "{all} {share}");
        // Each of the three is needed.
        for (without, least) in [("commit=500", 32.0), ("journal=0.5", 32.0)] {
            let (all, journal) = round(&format!("postmark:block=4KiB,fill=36,transactions=8,{without}"));
            let share = 100.0 * journal as f64 / all as f64;
            assert!(share > least && all > 450_000, "{without}: {all} {share}");
        }
        let (all, _) = round("postmark:block=4KiB,fill=36,transactions=8,cache=0");
        assert!(all > 450_000, "{all}");
    }
}
