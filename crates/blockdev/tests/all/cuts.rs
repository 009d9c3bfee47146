//! Power cuts under a disk: whatever was flushed or written with FUA is there after a mount, and
//! whatever was not is one of the versions that it may be.

use crate::serving::geometry;
use crash::Shared;
use ftl::ftls::{Durability, Entry};
use ftl::{Config, Flash};
use nand::{Capabilities, Cut, CutOutcome, FaultPlan, Faulty, MemNand};
use openftl_blockdev::{BlockDevice, Disk, DiskOptions, Keeping, Zeroing};
use proptest::prelude::*;
use table::AnyBytes;

type Device = Shared<Faulty<MemNand>>;

/// Flags of programmed pages can be set, for FTLs that do.
const CAPABILITIES: Capabilities = Capabilities { spare_reprograms: 2, ..Capabilities::MODERN };

const PAGES: u64 = 300;
const PAGE: u64 = 512;

/// What a cut may leave of whatever it cuts short.
const OUTCOMES: [CutOutcome; 7] = [
    CutOutcome::NotDone,
    CutOutcome::Done,
    CutOutcome::Torn,
    CutOutcome::TornData,
    CutOutcome::TornOnce,
    CutOutcome::Weak,
    CutOutcome::HalfErased,
];

/// A page as a client knows it.
#[derive(Clone)]
struct Page {
    /// What it reads as; `None` is an error.
    now: Option<Vec<u8>>,
    /// What else it may read as after a cut.
    may: Vec<Option<Vec<u8>>>,
    /// Everything that it ever was.
    versions: Vec<Vec<u8>>,
}

impl Page {
    fn written(&mut self, data: Vec<u8>, completed: bool) {
        if completed {
            self.may.clear();
        } else {
            self.may.push(self.now.take());
        }
        self.versions.push(data.clone());
        self.now = Some(data);
    }

    /// Forgotten, and not flushed.
    fn forgotten(&mut self) {
        self.may = self.versions.iter().cloned().map(Some).collect();
        self.may.extend([None, self.now.take()]);
        self.now = Some(vec![0; PAGE as usize]);
    }
}

#[derive(Clone, Debug)]
enum Act {
    Write { page: u64, at: u64, bytes: u64, fill: u8, fua: bool },
    Trim { page: u64, pages: u64, fua: bool },
    Zero { page: u64, pages: u64, fua: bool },
    Flush,
}

fn act() -> impl Strategy<Value = Act> {
    let write = (0..PAGES, 0..PAGE, 1..3 * PAGE, any::<u8>(), prop::bool::weighted(0.2), any::<bool>());
    let range = || (0..PAGES, 1..40_u64, prop::bool::weighted(0.2));
    prop_oneof![
        20 => write.prop_map(|(page, at, bytes, fill, fua, whole)| match whole {
            true => Act::Write { page, at: 0, bytes: bytes.div_ceil(PAGE) * PAGE, fill, fua },
            false => Act::Write { page, at, bytes, fill, fua },
        }),
        2 => range().prop_map(|(page, pages, fua)| Act::Trim { page, pages, fua }),
        1 => range().prop_map(|(page, pages, fua)| Act::Zero { page, pages, fua }),
        2 => Just(Act::Flush),
    ]
}

struct Run {
    row: Entry<AnyBytes>,
    device: Device,
    disk: Option<Disk<AnyBytes>>,
    pages: Vec<Page>,
}

impl Run {
    fn new(name: &str) -> Self {
        let row = table::find::<AnyBytes>(name).unwrap();
        let flash = MemNand::new(geometry(64, PAGE as u32), CAPABILITIES);
        let device = Shared::new(Faulty::new(flash, FaultPlan::default()));
        let ftl = (row.format)(Flash::new(Box::new(device.clone())), &Config::new(PAGES as u32)).unwrap();
        let options = DiskOptions { empty: true, ..DiskOptions::new(Keeping::PowerLoss) };
        let disk = Some(Disk::new(vec![ftl], row.info, options).unwrap());
        let zeros = vec![0; PAGE as usize];
        let page = Page { now: Some(zeros.clone()), may: Vec::new(), versions: vec![zeros] };
        Self { row, device, disk, pages: vec![page; PAGES as usize] }
    }

    fn flushed(&mut self) {
        self.pages.iter_mut().for_each(|page| page.may.clear());
    }

    /// Does something; whether power stayed on.
    fn act(&mut self, act: &Act) -> bool {
        let disk = self.disk.as_ref().unwrap();
        match *act {
            Act::Write { page, at, bytes, fill, fua } => {
                let offset = page * PAGE + at;
                let bytes = bytes.min(PAGES * PAGE - offset);
                let touched = (offset / PAGE) as usize..(offset + bytes).div_ceil(PAGE) as usize;
                if self.pages[touched].iter().any(|page| page.now.is_none()) {
                    // A part of a page that is an error cannot be written.
                    return true;
                }
                let data: Vec<u8> = (0..bytes).map(|i| fill.wrapping_add(i as u8)).collect();
                let done = disk.write(offset, &data, fua).is_ok();
                for page in offset / PAGE..(offset + bytes).div_ceil(PAGE) {
                    let begin = offset.max(page * PAGE);
                    let end = (offset + bytes).min((page + 1) * PAGE);
                    let model = &mut self.pages[page as usize];
                    let mut new = model.now.clone().unwrap();
                    let part = (begin - page * PAGE) as usize..(end - page * PAGE) as usize;
                    new[part].copy_from_slice(&data[(begin - offset) as usize..(end - offset) as usize]);
                    model.written(new, done);
                }
                done || !self.device.get().is_powered()
            }
            Act::Trim { page, pages, fua } | Act::Zero { page, pages, fua } => {
                let pages = pages.min(PAGES - page);
                let (offset, bytes) = (page * PAGE, pages * PAGE);
                let done = match act {
                    Act::Trim { .. } => disk.trim(offset, bytes, fua),
                    _ => disk.write_zeroes(offset, bytes, Zeroing { may_trim: true, only_fast: false, fua }),
                };
                for page in &mut self.pages[page as usize..(page + pages) as usize] {
                    page.forgotten();
                    if done.is_ok() && fua {
                        page.may.clear();
                    }
                }
                done.is_ok() || !self.device.get().is_powered()
            }
            Act::Flush => {
                let done = disk.flush().is_ok();
                if done {
                    self.flushed();
                }
                done || !self.device.get().is_powered()
            }
        }
    }

    /// Ends without saving, mounts, and looks at every page.
    fn cut_and_mount(&mut self, what: &str) -> Result<(), String> {
        self.device.get().power_down();
        drop(self.disk.take());
        self.device.get().plan_mut().cuts.clear();
        self.device.get().power_up();
        let mount = self.row.mount.unwrap();
        let config = Config::new(PAGES as u32);
        let (ftl, _) =
            mount(Flash::new(Box::new(self.device.clone())), &config).map_err(|error| format!("{what}: {error}"))?;
        let disk = Disk::new(vec![ftl], self.row.info, DiskOptions::new(Keeping::PowerLoss)).unwrap();
        for (at, page) in self.pages.iter_mut().enumerate() {
            let mut found = vec![0; PAGE as usize];
            let found = disk.read(at as u64 * PAGE, &mut found).ok().map(|()| found);
            if found != page.now && !page.may.contains(&found) {
                let first = found.as_ref().map(|bytes| bytes[..4].to_vec());
                let wanted = page.now.as_ref().map(|bytes| bytes[..4].to_vec());
                return Err(format!("{what}: page {at} reads {first:?}, not {wanted:?} nor one of {}", page.may.len()));
            }
            if found != page.now {
                let before = std::mem::replace(&mut page.now, found);
                page.may.push(before);
            }
        }
        self.disk = Some(disk);
        Ok(())
    }
}

fn durable() -> Vec<&'static str> {
    let table = table::table::<AnyBytes>();
    let kept = |row: &&Entry<AnyBytes>| row.info.durable == Durability::OnCompletion && row.mount.is_some();
    let fits = |row: &&Entry<AnyBytes>| row.info.runs_on(CAPABILITIES);
    table.iter().filter(kept).filter(fits).map(|row| row.info.name).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_was_flushed_is_there_after_every_cut(
        ftl in prop::sample::select(durable()),
        rounds in prop::collection::vec((prop::collection::vec(act(), 1..120), 0..600_u64, 0..OUTCOMES.len()), 1..5),
    ) {
        let mut run = Run::new(ftl);
        for (round, (acts, after, outcome)) in rounds.into_iter().enumerate() {
            {
                let mut device = run.device.get();
                let at = device.ops() + after;
                device.plan_mut().cuts = vec![Cut { at, outcome: OUTCOMES[outcome] }];
            }
            for act in acts {
                let going_on = run.act(&act);
                prop_assert!(going_on, "{ftl}: {act:?} failed with power on");
                if !run.device.get().is_powered() {
                    break;
                }
            }
            let what = format!("{ftl}, cut {round} after {after} operations");
            run.cut_and_mount(&what).map_err(TestCaseError::fail)?;
        }
    }
}
