//! Checkpoints and saved states with wrong bytes, under spare areas that are right.

#![allow(clippy::unwrap_used)]

use super::{capabilities, every_ftl, one_die};
use ftl::crc::Crc;
use ftl::ftls::{Durability, Entry};
use ftl::recovery::checkpoint::words;
use ftl::{Config, Flash, Ftl, FtlError, MountReport, Purpose, Setting};
use nand::{
    BlockId, Cut, CutOutcome, FaultPlan, Faulty, Geometry, Lpn, Nand, NandError, PageKind, Ppn, SimNand, Spare, Stamp,
};
use openftl_ftl as ftl;

type Device = Faulty<SimNand>;

const BLOCKS: u32 = 64;
const PAGES: u32 = 4;
const LOGICAL: u32 = 44;

/// Operations, reads included, that a mount and what follows may take.
const LIMIT: u64 = 200_000;

fn geometry() -> Geometry {
    one_die(BLOCKS, PAGES, 512)
}

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) >> 16) as u32 % end
    }
}

/// A device that lost power, what its disk held, and the pages of its youngest checkpoint with
/// their bytes.
struct Case {
    what: String,
    entry: Entry<Device>,
    config: Config,
    nand: Device,
    versions: Vec<u16>,
    pages: Vec<Ppn>,
    bytes: Vec<u8>,
}

impl Case {
    /// Writes until there are two checkpoints, or power fails with a battery; `None` if the FTL
    /// makes no checkpoints.
    fn new(entry: Entry<Device>, seed: u64) -> Option<Self> {
        let battery = entry.info.durable == Durability::Battery;
        if entry.mount.is_none() || !battery && !entry.info.honours(Setting::Maps) {
            return None;
        }
        let plan = FaultPlan { count_reads: true, ..FaultPlan::default() };
        let device = Faulty::new(SimNand::new(geometry(), capabilities(&entry.info)), plan);
        let config = Config { cache_entries: 12, ..Config::new(LOGICAL) };
        let mut ftl = (entry.format)(Flash::new(device), &config).unwrap();
        let (mut versions, mut rng) = (vec![0; LOGICAL as usize], Rng(seed));
        let mut version = 0;
        while version < 200 || !battery && ftl.flash().counts().of(Purpose::Checkpoint).programs < 8 {
            version += 1;
            let hot = LOGICAL / (1 + rng.below(3));
            let lpn = rng.below(hot);
            ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version }).unwrap();
            versions[lpn as usize] = version;
        }
        ftl.power_failing().unwrap();
        let what = format!("{}, seed {seed}", entry.info.name);
        let mut nand = ftl.into_flash().into_nand();
        let (pages, bytes) = youngest(&mut nand);
        Some(Self { what, entry, config, nand, versions, pages, bytes })
    }

    /// The device with other bytes in its youngest checkpoint.
    fn with(&self, bytes: &[u8]) -> Device {
        let mut nand = self.nand.clone();
        let geometry = geometry();
        let mut blocks: Vec<BlockId> = self.pages.iter().map(|ppn| geometry.block_of(*ppn)).collect();
        blocks.dedup();
        for block in blocks {
            let all = (0..PAGES).map(|offset| geometry.page_at(block, offset));
            let held: Vec<(Ppn, Spare, Vec<u8>)> = all.filter_map(|ppn| held(&mut nand, ppn)).collect();
            nand.erase(block).unwrap();
            for (ppn, spare, old) in held {
                let at = self.pages.iter().position(|page| *page == ppn);
                let new = at.map_or(&old[..], |at| &bytes[512 * at..512 * (at + 1)]);
                nand.program_meta(ppn, new, &spare).unwrap();
            }
        }
        nand
    }

    fn mount(&self, mut nand: Device) -> Result<(Box<dyn Ftl<Device>>, MountReport), FtlError> {
        let at = nand.ops() + LIMIT;
        nand.plan_mut().cuts = vec![Cut { at, outcome: CutOutcome::NotDone }];
        (self.entry.mount.unwrap())(Flash::new(nand), &self.config)
    }

    /// Every page reads as it was written, and no bit was believed.
    fn is_whole_without(&self, bytes: &[u8], bit: usize, believed: &str) {
        let what = format!("{}, bit {bit}", self.what);
        let (mut ftl, report) = self.mount(self.with(bytes)).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (lpn, version) in (0..).map(Lpn).zip(&self.versions) {
            let mut got = Stamp::UNWRITTEN;
            ftl.read(lpn, &mut got).unwrap_or_else(|error| panic!("{what}: {error}"));
            let right = if *version == 0 { Stamp::UNWRITTEN } else { Stamp { lpn, version: *version } };
            assert_eq!(got, right, "{what}");
        }
        ftl.check().unwrap_or_else(|error| panic!("{what}: {error}"));
        let last = report.steps.iter().rposition(|step| step.name.contains(believed)).unwrap();
        assert!(
            report.steps[last + 1..]
                .iter()
                .any(|step| step.name.contains("spare areas of young") || step.name.contains("scan every")),
            "{what}: {report:?}"
        );
    }
}

fn held(nand: &mut Device, ppn: Ppn) -> Option<(Ppn, Spare, Vec<u8>)> {
    let mut bytes = vec![0; 512];
    nand.read_meta(ppn, &mut bytes).ok().map(|spare| (ppn, spare, bytes))
}

/// The pages of the youngest checkpoint in order, and their bytes.
fn youngest(nand: &mut Device) -> (Vec<Ppn>, Vec<u8>) {
    let pages = (0..geometry().pages()).map(Ppn).filter_map(|ppn| held(nand, ppn));
    let mut pages: Vec<_> = pages.filter(|(_, spare, _)| spare.kind == PageKind::Checkpoint).collect();
    pages.sort_by_key(|(_, spare, _)| spare.seq);
    let run = pages.iter().rposition(|(_, spare, _)| spare.tag == 0).unwrap();
    (pages[run..].iter().map(|page| page.0).collect(), pages[run..].iter().flat_map(|page| page.2.clone()).collect())
}

fn cases(seed: u64) -> impl Iterator<Item = Case> {
    every_ftl().into_iter().filter_map(move |entry| Case::new(entry, seed))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[4 * at..4 * (at + 1)].try_into().unwrap())
}

/// Words of a checkpoint of the log-block engine before its check value.
fn body_words(bytes: &[u8]) -> usize {
    words(&geometry(), LOGICAL.div_ceil(PAGES), u64::from(word(bytes, 7)) + u64::from(word(bytes, 8))) as usize
}

#[test]
fn any_wrong_bit_of_a_checkpoint_or_saved_state_leaves_the_disk_as_if_it_were_not_there() {
    let mut found = 0;
    for case in cases(3) {
        found += 1;
        let battery = case.entry.info.durable == Durability::Battery;
        let (end, believed) = if battery {
            (case.bytes.len(), "a battery saved")
        } else {
            (4 * (body_words(&case.bytes) + 1), "find the checkpoint")
        };
        let mut case = case;
        if !battery {
            // The one before it would be taken.
            let older = |nand: &mut Device, ppn: &Ppn| {
                held(nand, *ppn).is_some_and(|(_, spare, _)| spare.kind == PageKind::Checkpoint)
            };
            for ppn in (0..geometry().pages()).map(Ppn).filter(|ppn| !case.pages.contains(ppn)) {
                if older(&mut case.nand, &ppn) {
                    case.nand.damage(ppn, nand::Blemish::Unreadable);
                }
            }
        }
        for bit in 0..8 * end {
            let mut bytes = case.bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            case.is_whole_without(&bytes, bit, believed);
        }
    }
    assert!(found >= 13, "{found}");
}

/// What no device does, but an image that somebody made: the check value is right and the rest is
/// not. Then an FTL may answer with errors or other pages of the disk, but it does not panic, and
/// it ends.
#[test]
fn a_checkpoint_that_lies_with_a_right_check_value_is_survived() {
    for case in (1..4).flat_map(cases).filter(|case| case.entry.info.durable != Durability::Battery) {
        let (mut rng, body) = (Rng(7), body_words(&case.bytes));
        for _ in 0..400 {
            let mut bytes = case.bytes.clone();
            for _ in 0..1 + rng.below(3) {
                let among = if rng.below(4) == 0 { 9 } else { body as u32 };
                let at = rng.below(among) as usize;
                let other = rng.below(body as u32) as usize;
                let new = match rng.below(4) {
                    0 => rng.below(u32::MAX),
                    1 => rng.below(BLOCKS * PAGES),
                    2 => word(&bytes, other),
                    _ => word(&bytes, at) ^ 1 << rng.below(32),
                };
                bytes[4 * at..4 * (at + 1)].copy_from_slice(&new.to_le_bytes());
            }
            let end = 4 * body_words(&bytes).min(bytes.len() / 4 - 1);
            let mut crc = Crc::new();
            crc.add(&bytes[..end]);
            bytes[end..end + 4].copy_from_slice(&crc.value().to_le_bytes());
            use_all(&case, case.with(&bytes));
        }
    }
}

fn use_all(case: &Case, mut nand: Device) {
    for _ in 0..2 {
        let Ok((mut ftl, _)) = case.mount(nand) else { return };
        let ended = |error: FtlError| assert_ne!(error, NandError::PowerLost.into(), "{}: it does not end", case.what);
        for lpn in (0..LOGICAL).map(Lpn) {
            ftl.read(lpn, &mut Stamp::UNWRITTEN.clone()).unwrap_or_else(ended);
        }
        for lpn in (0..2 * LOGICAL).map(|i| Lpn(i * 7 % LOGICAL)) {
            ftl.write(lpn, &Stamp { lpn, version: 9 }).unwrap_or_else(ended);
        }
        ftl.trim(Lpn(LOGICAL / 2), LOGICAL / 4).unwrap_or_else(ended);
        ftl.idle().map(drop).unwrap_or_else(ended);
        // What it says is not held against an FTL whose device contradicts itself.
        drop(ftl.check());
        nand = ftl.into_flash().into_nand();
    }
}
