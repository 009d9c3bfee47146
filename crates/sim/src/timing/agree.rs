//! The model and the second one, handed the same operations.

use super::second::Second;
use super::{Machine, Token};
use crate::spec::{DevicePlan, QueueOptions};
use ftl::{Branch, Config, Flash, Op, OpKind, Purpose};
use nand::geometry::Dimensions;
use nand::profiles::Limits;
use nand::{BlockId, ByType, Capabilities, Geometry, Lpn, Pairing, Ppn, SimNand, Stamp, Timing};
use std::ops::Range;
/// Lengths of which few sums are equal.
const TIMING: Timing = Timing {
    read_ns: 50_021,
    spare_read_ns: 20_011,
    program_ns: 500_009,
    erase_ns: 3_000_017,
    channel_bytes_per_us: 41,
    ..Timing::NONE
};

/// Reads come at another rate, and in parts of a page.
const LIMITS: Limits = Limits { read_unit_bytes: 64, channel_read_bytes_per_us: 53, ..Limits::NONE };

/// Pages of three types, in groups of six.
const CELLS: Pairing = Pairing { bits_per_cell: 3, distance: 2 };

/// The dies of a channel share queues too.
const QUEUES: Limits = Limits { read_queue_dies: 2, write_queues_per_channel: 1, ..LIMITS };

/// What a device can do beside the rest.
#[derive(Clone, Copy, Default)]
struct Can {
    copy_back: bool,
    multi_plane: bool,
    cache_programs: bool,
    cache_reads: bool,
    page_types: bool,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn geometry(blocks: u32) -> Geometry {
    Geometry::new(Dimensions {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks,
        pages_per_block: 16,
        page_bytes: 512,
        spare_bytes: 64,
    })
    .unwrap()
}

/// Both models, and what each says when a strand ended.
struct Both {
    machine: Machine,
    second: Second,
    ended: Vec<(Token, u64)>,
}

impl Both {
    fn new(geometry: &Geometry, limits: Limits, can: Can, read_priority: bool) -> Self {
        let options = QueueOptions { read_priority, max_overtakes: 3, ..QueueOptions::default() };
        let Can { copy_back, multi_plane, cache_programs, cache_reads, page_types } = can;
        let capabilities = Capabilities { copy_back, multi_plane, ..Capabilities::MODERN };
        let mut timing = Timing { cache_programs, cache_reads, ..TIMING };
        if page_types {
            timing.read_by_type_ns = ByType::new(&[30_011, 50_023, 70_029]).unwrap();
            timing.program_by_type_ns = ByType::new(&[200_003, 500_009, 800_015]).unwrap();
        }
        let device = DevicePlan {
            name: "both".to_owned(),
            geometry: *geometry,
            capabilities,
            timing,
            limits,
            pairing: Pairing::NONE,
            logical_pages: 1,
        };
        let device = if page_types { device.with_pairing(CELLS).unwrap() } else { device };
        let second = Second::new(&device, &options);
        Self { machine: Machine::new(&device, &options), second, ended: Vec::new() }
    }

    fn run_until(&mut self, until: u64) {
        while self.machine.next_ns().is_some_and(|ns| ns <= until) {
            let ended = self.machine.run_event().to_vec();
            self.ended.extend(ended.into_iter().map(|token| (token, self.machine.now_ns())));
        }
        self.second.run_until(until);
    }

    fn submit(&mut self, at: u64, token: Token, background: bool, ops: &[Op]) {
        self.run_until(at);
        self.machine.wait_until(at);
        self.machine.submit(token, background, ops.iter().copied());
        self.second.submit(token, background, None, ops);
    }

    /// Operations of a request that reads a part of a page.
    fn read(&mut self, at: u64, token: Token, page: Lpn, part: &Range<u64>, ops: &[Op]) {
        self.run_until(at);
        self.machine.wait_until(at);
        self.machine.submit_read(token, page, part, ops.iter().copied());
        self.second.submit(token, false, Some((page, part)), ops);
    }

    fn agree(mut self, strands: usize, what: &str) {
        self.run_until(u64::MAX / 2);
        assert_eq!(self.ended.len(), strands, "{what}: strands that ended");
        for (first, second) in self.ended.iter().zip(&self.second.ended) {
            assert_eq!(first, second, "{what}");
        }
        assert_eq!(self.second.ended.len(), strands, "{what}: strands that ended in the second model");
    }
}

#[test]
fn both_models_agree_about_any_operations() {
    let geometry = geometry(16);
    for seed in 0..2000 {
        let mut random = Random(seed);
        let limits = match seed % 5 {
            0 => QUEUES,
            1 => Limits { read_queue_dies: 2, ..LIMITS },
            2 => Limits { write_queues_per_channel: 2, ..LIMITS },
            _ => LIMITS,
        };
        let can = Can {
            copy_back: seed % 3 == 0,
            multi_plane: seed & 4 != 0,
            cache_programs: seed & 8 != 0,
            cache_reads: seed & 16 != 0,
            page_types: seed % 7 == 0,
        };
        let mut both = Both::new(&geometry, limits, can, seed % 2 == 0);
        let mut at = 0;
        for token in 0..25 {
            at += random.below(4_000_000);
            let (mut ops, mut branch) = (Vec::new(), Branch::NONE);
            for _ in 0..=random.below(20) {
                // Few blocks, so that copies, erases and programs meet.
                let page = |random: &mut Random| {
                    let (block, offset) = (random.below(8) as u32 * 2, random.below(3) as u32 / 2 * 3);
                    geometry.page_at(BlockId(block), offset)
                };
                let (page, from) = (page(&mut random), page(&mut random));
                let kind = match random.below(9) {
                    0 => OpKind::Read,
                    1 => OpKind::SpareRead,
                    2 => OpKind::Program,
                    3 => OpKind::Flags,
                    4 | 5 => OpKind::Erase,
                    _ => OpKind::Copy,
                };
                let from = if kind == OpKind::Copy { from } else { Ppn::NONE };
                let purpose = if random.below(4) == 0 { Purpose::Translation } else { Purpose::Host };
                branch = match (random.below(8), branch) {
                    (0..2, _) => Branch::NONE,
                    (2, _) => Branch { section: branch.section % 3 + 1, number: 0 },
                    (3..5, Branch { section: 1.., number }) => Branch { number: number + 1, ..branch },
                    _ => branch,
                };
                ops.push(Op { kind, purpose, page, from, branch });
            }
            let (start, bytes) = (random.below(512), 1 + random.below(512));
            match random.below(8) {
                0 | 1 => both.submit(at, token, true, &ops),
                2..5 => both.read(at, token, Lpn(token % 3), &(start..(start + bytes).min(512)), &ops),
                _ => both.submit(at, token, false, &ops),
            }
        }
        both.agree(25, &format!("seed {seed}"));
    }
}

#[test]
fn both_models_agree_about_every_ftl() {
    const REQUESTS: u32 = 1500;
    let geometry = geometry(256);
    for (entry, limits) in table::table::<SimNand>().iter().flat_map(|entry| [(entry, LIMITS), (entry, QUEUES)]) {
        let capabilities = Capabilities {
            program_order: entry.info.program_order,
            spare_reprograms: entry.info.flags,
            ..Capabilities::MODERN
        };
        let make = |logical_pages| {
            let flash = Flash::new(SimNand::new(geometry, capabilities));
            (entry.format)(flash, &Config::new(logical_pages))
        };
        let fits = (1..16).rev().find_map(|part| {
            let logical_pages = geometry.pages() * part / 16;
            Some((logical_pages, make(logical_pages).ok()?))
        });
        let (logical_pages, mut ftl) = fits.unwrap();
        let write = |ftl: &mut dyn ftl::Ftl<SimNand>, lpn, version| ftl.write(lpn, &Stamp { lpn, version }).unwrap();
        (0..logical_pages).for_each(|lpn| write(&mut *ftl, Lpn(lpn), 1));
        ftl.flash_mut().set_logging(true);
        let mut random = Random(logical_pages.into());
        let can =
            Can { multi_plane: true, cache_programs: true, cache_reads: true, page_types: true, ..Can::default() };
        let mut both = Both::new(&geometry, limits, can, true);
        let (mut at, mut strands, mut erases, mut merges, mut parts) = (0, 0, 0, 0, 0);
        let mut moved_apart = 0;
        for token in 0..REQUESTS {
            at += random.below(6_000_000);
            let lpn = Lpn(random.below(logical_pages.into()) as u32);
            let kind = random.below(10);
            match kind {
                0..3 => ftl.read(lpn, &mut Stamp { lpn, version: 0 }).unwrap(),
                3 => ftl.trim(lpn, 1).unwrap(),
                _ => write(&mut *ftl, lpn, 2),
            }
            let ops: Vec<_> = ftl.flash_mut().drain_log().collect();
            let erased = ops.iter().filter(|op| op.kind == OpKind::Erase).count();
            erases += erased;
            moved_apart += ops.iter().filter(|op| op.kind == OpKind::Copy && op.branch.number > 0).count();
            merges += usize::from(erased > 1);
            strands += usize::from(!ops.is_empty());
            if kind < 3 && token % 7 != 0 {
                let of_host = ops.iter().filter(|op| op.kind == OpKind::Read && op.purpose == Purpose::Host).count();
                assert!(of_host <= 1, "{} read {of_host} pages for one of the host", entry.info.name);
                parts += of_host;
                both.read(at, token, lpn, &(64 * kind..64 * kind + 1), &ops);
            } else {
                both.submit(at, token, token % 7 == 0, &ops);
            }
        }
        assert!(parts > 0, "{} read no page of the host", entry.info.name);
        assert!(erases > 0, "{} erased nothing", entry.info.name);
        let apart = ["dftl", "asa", "gecko", "flagship", "ftrm-baseline"].contains(&entry.info.name);
        assert_eq!(moved_apart > 0, apart, "{} moved {moved_apart} pages apart", entry.info.name);
        assert!(merges > 0 || entry.info.validity.is_some(), "{} merged nothing", entry.info.name);
        both.agree(strands, entry.info.name);
    }
}
