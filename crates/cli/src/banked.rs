//! Disks of LFTL, the engine of many threads: a device a bank, in memory or in a file.
//!
//! The banks of a file number their operations together, because a page moves from bank to bank
//! when it is written again.

use crate::args::{BankedArgs, BufferPolicy, DiskArgs, FormatArgs, ServeArgs};
use crate::backing::Backing;
use crate::error::usage;
use crate::image::{MADE_BY, text_of, version_of};
use crate::units::{bytes, count};
use crate::{device, format, output, settings};
use anyhow::{Context, Result, bail};
use blockdev::{BankedDisk, BankedOptions, Log};
use ftl::{MountReport, MountStep, OpCounts, Shortage};
use lftl::{Engine, LftlError, Ops, Options, Policy, Recovery, Replacement, Server, Threads};
use nand::file::Numbering;
use nand::{Dimensions, FileNand, Geometry, MemNand};
use serde::{Deserialize, Serialize};
use sim::DevicePlan;
use std::path::Path;
use std::sync::Arc;

/// The name by which it is asked for.
pub const NAME: &str = "lftl";
/// What is there after power loss.
pub const PROMISE: &str = "every flushed write is there";
/// The card if nobody names one: the paper's banks with few blocks each, of which the host sees
/// less than of the whole card.
const DEVICE: &str = "lftl-card";
const CAPACITY: u64 = 2 << 30;
const LOGICAL_RATIO: f64 = 0.7;
/// Version of the record.
const VERSION: u32 = 1;
/// Threads that look for the disk when it is mounted.
const MOUNT_THREADS: usize = 8;

/// What a file keeps of such a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    version: u32,
    /// The profile that the banks were made from.
    pub device: String,
    made_by: String,
    lftl: Settings,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    logical_pages: u32,
}

/// Whether the owner's bytes of a device tell of such a disk.
pub fn is_one(owner: &[u8]) -> bool {
    let table = str::from_utf8(owner).ok().and_then(|text| toml::from_str::<toml::Table>(text).ok());
    table.is_some_and(|table| table.contains_key(NAME))
}

/// A disk, not mounted yet.
pub struct Image {
    /// The banks.
    pub nands: Vec<Backing>,
    /// What the file says of it.
    pub record: Record,
}

impl Image {
    /// The disk on the devices of a file, of which the owner's bytes say what it is.
    pub fn of_devices(nands: Vec<Backing>, owner: &[u8]) -> Result<Self> {
        let text = text_of(owner)?;
        version_of(text, VERSION)?;
        let record: Record =
            toml::from_str(text).context("the record of what is on the device cannot be understood")?;
        let joint = |nand: &Backing| nand.file().is_some_and(|file| file.numbering() == Numbering::Joint);
        if !nands.iter().all(joint) {
            bail!("the record tells of banks under {NAME}, and the devices number their operations one by one");
        }
        Ok(Self { nands, record })
    }

    /// Pages of the disk.
    pub const fn pages(&self) -> u32 {
        self.record.lftl.logical_pages
    }

    /// Finds the disk; whatever power loss left is put in order.
    pub fn mount(self, options: Options) -> Result<(Engine, MountReport)> {
        let (engine, report) = Engine::mount(self.nands.into(), options, Recovery::Bounded, MOUNT_THREADS)
            .with_context(|| format!("{NAME} cannot mount the disk"))?;
        let (search, all) = (sum(&report.search), sum(&report.all));
        let settle = OpCounts {
            reads: all.reads - search.reads,
            spare_reads: all.spare_reads - search.spare_reads,
            programs: all.programs - search.programs,
            erases: all.erases - search.erases,
            flag_programs: 0,
        };
        let steps = [("find the disk", search), ("settle what is in doubt", settle)];
        let report = MountReport {
            steps: steps.map(|(name, ops)| MountStep { name, ops }).to_vec(),
            unreadable_pages: 0,
            rebuilt_entries: report.rebuilt_entries,
            read_only: report.read_only.map(|lftl::Shortage { bad_blocks, blocks, needed, .. }| Shortage {
                bad_blocks,
                blocks,
                needed,
            }),
        };
        Ok((engine, report))
    }

    /// As [`Image::mount`], to look at the disk.
    pub fn mount_to_read(self) -> Result<(Engine, MountReport)> {
        let options = Options::new(self.pages());
        self.mount(options)
    }
}

/// Operations of all banks.
fn sum(banks: &[Ops]) -> OpCounts {
    banks.iter().fold(OpCounts::default(), |all, ops| OpCounts {
        reads: all.reads + ops.reads,
        spare_reads: all.spare_reads + ops.spare_reads,
        programs: all.programs + ops.programs,
        erases: all.erases + ops.erases,
        flag_programs: 0,
    })
}

/// Options of this FTL alone, and whether each was given.
pub fn given(args: &BankedArgs) -> [(&'static str, bool); 5] {
    [
        ("--workers", args.workers.is_some()),
        ("--collectors", args.collectors.is_some()),
        ("--policy", args.policy.is_some()),
        ("--buffers", args.buffers.is_some()),
        ("--replacement", args.replacement.is_some()),
    ]
}

/// A card that can be made.
struct Planned {
    /// All of it.
    plan: DevicePlan,
    ratio: f64,
    banks: u32,
    /// Of a bank.
    geometry: Geometry,
}

fn planned(disk: &DiskArgs, shards: u32) -> Result<Planned> {
    let tuned = settings::given(&disk.tuning).map(|(option, _, given)| (option, given));
    let others = [("--shards", shards > 1)];
    if let Some((option, _)) = others.iter().chain(&tuned).find(|(_, given)| *given) {
        return Err(usage(format!("{option} means nothing to {NAME}; leave it out")));
    }
    let profile = device::profile(disk.device.as_deref().unwrap_or(DEVICE))?;
    let ratio = disk.logical_ratio.or(disk.device.is_none().then_some(LOGICAL_RATIO));
    let ratio = device::ratio(&profile, ratio)?;
    let capacity = disk.capacity.map(|size| size.0).or(disk.device.is_none().then_some(CAPACITY));
    let plan = device::plan(&profile, capacity, ratio)?;
    let (whole, banks) = (plan.geometry.dimensions(), plan.geometry.dies());
    let one = Dimensions { channels: 1, dies_per_channel: 1, blocks: whole.blocks / banks, ..whole };
    let geometry = Geometry::new(one)?;
    Ok(Planned { plan, ratio, banks, geometry })
}

/// Makes an empty disk in a file.
pub fn format(args: &FormatArgs) -> Result<()> {
    let planned = planned(&args.disk, args.shards)?;
    let Planned { plan, ratio, banks, geometry } = &planned;
    let settings = Settings { logical_pages: plan.logical_pages };
    let record = Record { version: VERSION, device: plan.name.clone(), made_by: MADE_BY.to_owned(), lftl: settings };
    let record = toml::to_string(&record).context("the settings cannot be written as TOML")?;
    let options = Options::new(plan.logical_pages);
    let held = format::held(&args.image, args.force)?;
    format::make(&args.image, |beside| {
        let devices = u16::try_from(*banks).context("there are too many banks")?;
        let nands = FileNand::create_joint(beside, devices, *geometry, plan.capabilities, record.as_bytes())?;
        let engine = Engine::format(nands.into(), options).map_err(refused)?;
        let nands: Vec<FileNand> = engine.shut_down()?.into_kind()?;
        Ok(nands.into_iter().try_for_each(FileNand::close)?)
    })?;
    drop(held);
    output::print(&format!(
        "{}: {} of disk, {} pages of {}, under {NAME} over {banks} banks\n{}\n",
        args.image.display(),
        bytes(u64::from(plan.logical_pages) * u64::from(geometry.page_bytes())),
        count(plan.logical_pages.into()),
        bytes(geometry.page_bytes().into()),
        device::describe(plan, *ratio),
    ))
}

/// What the engine is told of a disk of so many pages, and its threads.
fn told(args: &BankedArgs, logical_pages: u32) -> (Options, Threads) {
    let policy = named(args.policy.as_deref(), &Policy::TABLE, Policy::Adaptive);
    let replacement = args.replacement.map_or(Replacement::Fifo, BufferPolicy::replacement);
    let default = Options::new(logical_pages);
    let buffers = args.buffers.unwrap_or(default.buffers);
    let collectors = args.collectors.unwrap_or(if policy == Policy::WritePath { 0 } else { 8 });
    let threads = Threads { workers: args.workers.unwrap_or(16), collectors };
    (Options { policy, replacement, buffers, ..default }, threads)
}

/// A disk that can be served.
pub struct Served {
    /// The disk.
    pub disk: BankedDisk,
    /// What it is.
    pub description: String,
    /// Why it can only be read, if that is so.
    pub shortage: Option<Shortage>,
}

/// A new disk in memory.
pub fn in_memory(args: &ServeArgs, log: &Arc<dyn Log>) -> Result<Served> {
    let Planned { plan, banks, geometry, .. } = planned(&args.disk, args.shards)?;
    device::check_memory(plan.geometry.raw_bytes())?;
    let bank = |_| {
        let nand = Backing::from(MemNand::new(geometry, plan.capabilities));
        if args.delays { nand.paced(plan.timing) } else { nand }
    };
    let (options, threads) = told(&args.banked, plan.logical_pages);
    let engine = Engine::format((0..banks).map(bank).collect(), options).map_err(refused)?;
    serve(engine, threads, None, BankedOptions::new(Arc::clone(log)))
}

/// The disk of a file.
pub fn in_file(image: Image, args: &ServeArgs, options: BankedOptions, path: &Path) -> Result<Served> {
    let (told, threads) = told(&args.banked, image.pages());
    let mounted = image.mount(told);
    let (engine, report) = mounted.with_context(|| format!("cannot serve {}", path.display()))?;
    serve(engine, threads, report.read_only, options)
}

fn serve(engine: Engine, threads: Threads, shortage: Option<Shortage>, options: BankedOptions) -> Result<Served> {
    let banks = engine.banks();
    let server = Server::start(engine, threads).map_err(refused)?;
    let description = format!("{} under {NAME} over {banks} banks", bytes(server.size_bytes()));
    Ok(Served { disk: BankedDisk::new(server, options), description, shortage })
}

/// What cannot be built is said by the command line.
fn refused(error: LftlError) -> anyhow::Error {
    match error {
        LftlError::Unsupported { reason } => usage(format!("{NAME}: {reason}")),
        error => error.into(),
    }
}

/// What the command line names; it takes no other names than those of the table.
fn named<T: Copy>(given: Option<&str>, table: &[(&'static str, T)], default: T) -> T {
    given.and_then(|given| table.iter().find(|(name, _)| *name == given)).map_or(default, |(_, value)| *value)
}
