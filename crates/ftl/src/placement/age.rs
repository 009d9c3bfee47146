//! Adaptive separation by age: pages whose versions live about equally long share blocks, and the
//! ages that part them are found by clustering.
//!
//! 1. A page's age is the time since the host wrote it last. When the host writes it again, the age
//!    is how long the version before lived, and says where the new version goes.
//! 2. Some of these ages, picked at random, replace random entries of the sample age table (SAT).
//! 3. In the background K-means parts the table into groups, some entries a step, and the middle
//!    between two neighbouring means becomes a boundary. Ages have heavy tails: the means are of
//!    their logarithms, or the tail alone would take every boundary ([`Octaves`]).
//! 4. A write goes to the group of its age, the youngest first. A page of unknown age goes to the
//!    coldest. As long as there are no boundaries, the host fills the hottest group and collectors
//!    the coldest.
//! 5. What is moved never becomes hotter: it goes to the group of the age that it has reached, but
//!    stays at least as cold as the block that it comes from.
//!
//! The groups share one pool of free blocks, so none can run short while another has some.
//!
//! Ages are host writes, from a table in RAM of four bytes a page; or programs of the device, if
//! the mapping keeps when pages were written ([`PageWrite::past`]). The table of samples,
//! boundaries and groups of blocks are not saved: after a mount they are found anew, which costs
//! write amplification and nothing else.

use super::kmeans::{Boundaries, CENTRES, KMeans};
use super::{Cause, Entry, PageWrite, Placement, Stream};
use crate::config::{Config, Setting};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use nand::{BlockId, Geometry};

/// Groups that can be asked for.
pub const GROUPS: core::ops::RangeInclusive<u32> = 2..=CENTRES as u32;

/// Entries of the sample age table.
const SAMPLES: u32 = 1024;

/// New samples after which the next pass begins.
const FRESH: u32 = SAMPLES / 4;

/// A block that no group has filled since it was erased, as far as is known.
const NONE: u8 = u8::MAX;

/// Seed of the choice of samples.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

pub(super) const ENTRY: Entry = Entry {
    name: "asa",
    summary: "streams by the age at which pages are overwritten, parted by K-means over sampled ages",
    source: "Xie and Chen, An Adaptive Separation-Aware FTL for Improving the Efficiency of Garbage Collection in SSDs, CCGrid 2014",
    settings: &[Setting::AgeGroups],
    knows_future: false,
    make: |config, geometry, pasts| {
        let written = if pasts { Vec::new() } else { vec![0; config.logical_pages as usize] };
        Box::new(ByAge::new(config, geometry, written))
    },
};

/// An age by its logarithm: 32 steps an octave, linear between powers of two. 0 is the age 0.
struct Octaves;

impl Octaves {
    const fn of(age: u64) -> u16 {
        let Some(octave) = age.checked_ilog2() else { return 0 };
        let mantissa = if octave >= 5 { age >> (octave - 5) } else { age << (5 - octave) };
        (32 * (octave + 1) + (mantissa & 31) as u32) as u16
    }
}

/// The policy.
struct ByAge {
    groups: u8,
    /// Pages that the host has written, modulo 2^32; 0 is never.
    now: u32,
    /// When the host wrote each logical page last; empty if the mapping keeps that.
    written: Vec<u32>,
    /// The group that fills each block.
    group: Vec<u8>,
    samples: Vec<u16>,
    /// One age in so many is sampled.
    one_in: u32,
    /// Samples since the last pass began.
    fresh: u32,
    boundaries: Option<Boundaries>,
    pass: Option<KMeans>,
    random: u64,
}

impl ByAge {
    fn new(config: &Config, geometry: &Geometry, written: Vec<u32>) -> Self {
        Self {
            groups: config.age_groups.clamp(*GROUPS.start(), *GROUPS.end()) as u8,
            now: 0,
            written,
            group: vec![NONE; geometry.blocks() as usize],
            samples: Vec::with_capacity(SAMPLES as usize),
            // The table is new after about half as many writes as there are pages.
            one_in: (config.logical_pages / (2 * SAMPLES)).max(1),
            fresh: 0,
            boundaries: None,
            pass: None,
            random: SEED,
        }
    }

    /// A random number (Marsaglia's xorshift).
    fn draw(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32) as u32
    }

    /// How long ago the host wrote the page, as far as is known.
    fn age(&self, write: &PageWrite) -> Option<u64> {
        match self.written.get(write.lpn.index()) {
            Some(0) => None,
            Some(written) => Some(u64::from(self.now.wrapping_sub(*written))),
            None => write.past.map(|past| past.age),
        }
    }

    fn sample(&mut self, age: u16) {
        if !self.draw().is_multiple_of(self.one_in) {
            return;
        }
        self.fresh += 1;
        if self.samples.len() < SAMPLES as usize {
            self.samples.push(age);
            return;
        }
        let place = (self.draw() % SAMPLES) as usize;
        self.samples[place] = age;
    }

    /// Where a page goes that the host writes.
    fn of_host(&mut self, age: Option<u64>) -> u8 {
        let coldest = self.groups - 1;
        let age = age.map(Octaves::of);
        if let Some(age) = age {
            self.sample(age);
        }
        match (self.boundaries, age) {
            (None, _) => 0,
            (Some(_), None) => coldest,
            (Some(boundaries), Some(age)) => boundaries.group(age).min(coldest),
        }
    }

    /// Where a page goes that is moved.
    fn of_moved(&self, write: &PageWrite, age: Option<u64>) -> u8 {
        let coldest = self.groups - 1;
        let Some(boundaries) = self.boundaries else { return coldest };
        let known = write.from.map(|block| self.group[block.index()]).filter(|group| *group != NONE);
        let before = known.or(write.past.map(|past| past.stream.0)).unwrap_or(0);
        // The copy is no older than what it holds.
        let reached = age.or(write.age.filter(|_| self.written.is_empty()));
        let reached = reached.map_or(coldest, |age| boundaries.group(Octaves::of(age)));
        before.max(reached).min(coldest)
    }
}

impl Placement for ByAge {
    fn streams(&self) -> u8 {
        self.groups
    }

    #[inline]
    fn place(&mut self, write: &PageWrite) -> Stream {
        let age = self.age(write);
        if write.cause != Cause::Host {
            return Stream(self.of_moved(write, age));
        }
        self.now = self.now.wrapping_add(1).max(1);
        if let Some(written) = self.written.get_mut(write.lpn.index()) {
            *written = self.now;
        }
        Stream(self.of_host(age))
    }

    fn asks_for_past(&self) -> bool {
        self.written.is_empty()
    }

    fn idle(&mut self, budget: u32) -> bool {
        if self.pass.is_none() {
            if self.fresh < FRESH {
                return false;
            }
            self.fresh = 0;
            self.pass = Some(KMeans::begin(&self.samples, self.groups));
        }
        for _ in 0..budget {
            let Some(pass) = &mut self.pass else { break };
            if let Some(found) = pass.step(&self.samples) {
                (self.boundaries, self.pass) = (Some(found), None);
            }
        }
        true
    }

    fn follows_blocks(&self) -> bool {
        true
    }

    #[inline]
    fn placed(&mut self, stream: Stream, block: BlockId) {
        self.group[block.index()] = stream.0;
    }

    fn emptied(&mut self, block: BlockId) {
        self.group[block.index()] = NONE;
    }

    fn ram_bytes(&self) -> u64 {
        let tables = 4 * self.written.capacity() + self.group.capacity() + 2 * self.samples.capacity();
        (tables + size_of::<Self>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nand::Lpn;

    fn asa(logical_pages: u32, age_groups: u32) -> Box<dyn Placement> {
        let config = Config { age_groups, ..Config::new(logical_pages) };
        (ENTRY.make)(&config, &super::super::tests::geometry(), false)
    }

    /// As the engine does it.
    fn host(policy: &mut dyn Placement, lpn: u32) -> u8 {
        let stream = policy.place(&PageWrite::by_host(Lpn(lpn)));
        policy.idle(1);
        stream.0
    }

    fn moved(policy: &mut dyn Placement, lpn: u32, from: u32) -> u8 {
        let from = Some(BlockId(from));
        policy.place(&PageWrite { lpn: Lpn(lpn), cause: Cause::Collection, age: Some(1), from, past: None }).0
    }

    /// Of every sixteen writes fifteen go to the first ten of two thousand pages, the last to the
    /// others in turn; the stream of the last hot and the last cold one.
    fn skewed(policy: &mut dyn Placement, writes: u32, hot_from: u32) -> (u8, u8) {
        let mut last = (u8::MAX, u8::MAX);
        for at in 0..writes {
            if at % 16 == 15 {
                last.1 = host(policy, (hot_from + 10 + (at / 16) % 1990) % 2000);
            } else {
                last.0 = host(policy, (hot_from + at % 10) % 2000);
            }
        }
        last
    }

    #[test]
    fn logarithms_grow_with_ages() {
        assert_eq!([0, 1, 2, 3, 4, 64, 96].map(Octaves::of), [0, 32, 64, 80, 96, 224, 240]);
        assert!((0..100_000).map(Octaves::of).is_sorted());
        assert!(Octaves::of(u64::MAX) < u16::MAX);
    }

    #[test]
    fn without_samples_the_host_and_the_collector_are_apart() {
        let mut policy = asa(2000, 3);
        assert_eq!([host(&mut *policy, 1), host(&mut *policy, 1), moved(&mut *policy, 1, 0)], [0, 0, 2]);
    }

    #[test]
    fn ages_that_lie_apart_part_pages() {
        let mut policy = asa(2000, 2);
        assert_eq!(skewed(&mut *policy, 80_000, 0), (0, 1));
        // Never written, as far as is known.
        let mut one = asa(3000, 3);
        skewed(&mut *one, 80_000, 0);
        assert_eq!(host(&mut *one, 2999), 2);
    }

    #[test]
    fn ages_that_are_all_alike_make_one_group() {
        let mut policy = asa(100, 3);
        let streams: Vec<u8> = (0..20_000).map(|at| host(&mut *policy, at % 100)).collect();
        assert!(streams[10_000..].iter().all(|stream| *stream == 0));
    }

    #[test]
    fn what_is_moved_never_becomes_hotter() {
        let mut policy = asa(2000, 3);
        skewed(&mut *policy, 80_000, 0);
        for (block, stream) in [0_u8, 1, 2].into_iter().enumerate() {
            policy.placed(Stream(stream), BlockId(block as u32));
            host(&mut *policy, 3);
            assert!(moved(&mut *policy, 3, block as u32) >= stream, "just written, moved out of group {stream}");
        }
        // Page 1500 was written long ago: it went with hot ones and has become cold.
        assert_eq!(moved(&mut *policy, 1500, 0), 2);
    }

    #[test]
    fn a_workload_that_changes_is_followed() {
        let mut policy = asa(2000, 2);
        skewed(&mut *policy, 80_000, 0);
        // The hot pages become cold ones: after one write of each, both are where they belong.
        assert_eq!(skewed(&mut *policy, 32, 1000).0, 0);
        // All become equally warm: the boundaries follow the ages within three times the table.
        let mut state = 1_u32;
        let mut uniform = |policy: &mut dyn Placement, writes: u32| {
            let streams = (0..writes).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                host(policy, (state >> 8) % 2000)
            });
            streams.filter(|stream| *stream == 0).count() as f64 / f64::from(writes)
        };
        let before = uniform(&mut *policy, 500);
        uniform(&mut *policy, 5 * SAMPLES);
        let after = uniform(&mut *policy, 5000);
        assert!(before < 0.2 && after > 0.2, "{before} of uniform writes are hot at first, {after} then");
    }

    #[test]
    fn a_mapping_that_keeps_ages_spares_the_table() {
        let config = Config { age_groups: 2, ..Config::new(2000) };
        let mut policy = (ENTRY.make)(&config, &super::super::tests::geometry(), true);
        assert!(policy.asks_for_past() && policy.ram_bytes() < 8000);
        let write = |lpn, age, stream| PageWrite {
            past: Some(super::super::Past { age, stream: Stream(stream) }),
            ..PageWrite::by_host(Lpn(lpn))
        };
        for at in 0..40_000_u64 {
            policy.place(&write(1, if at % 8 == 0 { 50_000 } else { 40 }, 0));
            policy.idle(1);
        }
        assert_eq!([40, 50_000].map(|age| policy.place(&write(1, age, 0)).0), [0, 1]);
        // A block of which nothing is known since the mount: the mapping says where the page was.
        let moved = PageWrite { cause: Cause::Collection, age: Some(40), from: Some(BlockId(9)), ..write(1, 40, 1) };
        assert_eq!(policy.place(&moved).0, 1);
        assert_eq!(policy.place(&PageWrite { past: None, ..moved }).0, 0);
    }

    /// Why the logarithm: over the ages themselves the rare oldest part the groups among each
    /// other.
    #[test]
    fn over_plain_ages_the_tail_takes_every_boundary() {
        // 900 ages of about 10, 90 of about 1000, 10 of 20000 and more.
        let ages: Vec<u64> = (0..1000)
            .map(|at| match at {
                0..900 => 8 + at % 5,
                900..990 => 900 + at,
                _ => 20_000 + 3000 * (at - 990),
            })
            .collect();
        let part = |values: &[u16]| {
            let mut pass = KMeans::begin(values, 3);
            loop {
                if let Some(found) = pass.step(values) {
                    return [0, 900, 999].map(|at: usize| found.group(values[at]));
                }
            }
        };
        let plain: Vec<u16> = ages.iter().map(|age| *age as u16).collect();
        let octaves: Vec<u16> = ages.iter().map(|age| Octaves::of(*age)).collect();
        assert_eq!(part(&octaves), [0, 1, 2]);
        assert_eq!(part(&plain)[..2], [0, 0], "1000 counts as 10 does");
    }
}
