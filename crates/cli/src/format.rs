//! `openftl format`: an empty disk in a file.

use crate::args::{DiskArgs, FormatArgs};
use crate::backing::Backing;
use crate::error::usage;
use crate::image::{Disk, Record};
use crate::units::{Size, bytes, count};
use crate::{banked, compare, device, output, settings};
use anyhow::{Context, Result, bail};
use blockdev::disk::{STRIPE_PAGES, striped_pages};
use ftl::ftls::{self, Durability, Info};
use ftl::{Config, Flash, FtlError};
use nand::{FileError, FileNand};
use sim::DevicePlan;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use table::AnyBytes;

/// What a disk is made of if nobody says.
const FTL: &str = "gecko";
const DEVICE: &str = "demo";

/// Makes the disk.
pub fn run(args: &FormatArgs) -> Result<()> {
    let banked = args.disk.ftl.as_deref() == Some(banked::NAME);
    #[cfg(target_os = "linux")]
    if crate::flash::is_one(&args.image) {
        if banked {
            return Err(usage(format!(
                "{} is for files: {} is flash, of which Linux does one operation at a time",
                banked::NAME,
                args.image.display()
            )));
        }
        return crate::flash::format(args);
    }
    if banked {
        return banked::format(args);
    }
    let planned = planned_shards(&args.disk, args.shards)?;
    check_durable(&planned.info)?;
    let held = held(&args.image, args.force)?;
    make(&args.image, |beside| fill(beside, &planned, args.shards))?;
    drop(held);
    output::print(&made(&args.image, &planned, args.shards))
}

/// What was made, in words.
pub fn made(path: &Path, planned: &Planned, shards: u32) -> String {
    let Planned { info, plan, ratio, .. } = planned;
    let pages = striped_pages(shards, plan.logical_pages);
    let page_bytes = u64::from(plan.geometry.page_bytes());
    let (over, each) = match shards {
        1 => (String::new(), ""),
        _ => (format!(" over {shards} shards"), "each shard: "),
    };
    format!(
        "{}: {} of disk, {} pages of {}, under {}{over}\n{each}{}\n",
        path.display(),
        bytes(pages * page_bytes),
        count(pages),
        bytes(page_bytes),
        info.name,
        device::describe(plan, *ratio),
    )
}

/// A disk that can be made.
pub struct Planned {
    /// The FTL.
    pub info: Info,
    /// The device.
    pub plan: DevicePlan,
    /// The share of the device that the host sees.
    pub ratio: f64,
    /// What the FTL is told.
    pub config: Config,
}

/// Looks at what was asked of a disk that keeps every byte.
pub fn planned(args: &DiskArgs) -> Result<Planned> {
    let profile = device::profile(args.device.as_deref().unwrap_or(DEVICE))?;
    let ratio = device::ratio(&profile, args.logical_ratio)?;
    let plan = device::plan(&profile, args.capacity.map(|size| size.0), ratio)?;
    tuned(args, plan, ratio)
}

/// Looks at what was asked of a disk of shards; the answer is of one of them, which has its part of
/// the capacity.
pub fn planned_shards(args: &DiskArgs, shards: u32) -> Result<Planned> {
    let whole = planned(args)?;
    if shards == 1 {
        return Ok(whole);
    }
    let each = whole.plan.geometry.raw_bytes() / u64::from(shards);
    let planned = planned(&DiskArgs { capacity: Some(Size(each)), ..args.clone() })
        .with_context(|| format!("each of {shards} shards has {} of the device", bytes(each)))?;
    let pages = planned.plan.logical_pages;
    if striped_pages(shards, pages) == 0 {
        return Err(usage(format!(
            "each of {shards} shards has {pages} pages and needs {STRIPE_PAGES}; use fewer shards or more --capacity"
        )));
    }
    Ok(planned)
}

/// Looks at what was asked of a disk on this device.
pub fn tuned(args: &DiskArgs, plan: DevicePlan, ratio: f64) -> Result<Planned> {
    let ftl = args.ftl.as_deref().unwrap_or(FTL).to_owned();
    let info = compare::ftls(&[ftl])?.remove(0);
    settings::check_disk(&args.tuning)?;
    let (store, placement) = (args.tuning.validity.as_deref(), args.tuning.placement.as_deref());
    settings::not_taken(&settings::given(&args.tuning), &[info], store, placement)?;
    if args.tuning.maps == Some(crate::args::MapsArg::Nonvolatile) {
        return Err(usage("--maps nonvolatile assumes memory that no disk of bytes has; leave it out"));
    }
    device::check_order(&[info], &plan.name, plan.capabilities)?;
    if let Some(note) = settings::cache_note(&args.tuning, plan.logical_pages) {
        output::note(&note);
    }
    let asked = settings::asked(&args.tuning, plan.config(), &plan.geometry)?;
    let config = info.config(&asked);
    Ok(Planned { info, plan, ratio, config })
}

/// Refuses an FTL that a killed process or a power cut would cost written data.
pub fn check_durable(info: &Info) -> Result<()> {
    match info.durable {
        Durability::OnCompletion | Durability::OnFlush => Ok(()),
        Durability::Battery | Durability::NonVolatileMaps | Durability::Nothing => {
            let is_safe = |info: &&Info| matches!(info.durable, Durability::OnCompletion | Durability::OnFlush);
            let safe: Vec<&str> = ftls::infos().iter().filter(is_safe).map(|info| info.name).collect();
            Err(usage(format!(
                "{} does not survive power loss, and so no killed process: {}; choose one of {}",
                info.name,
                info.promise(),
                safe.join(", ")
            )))
        }
    }
}

/// The file that is replaced, locked so that nobody opens it meanwhile; `None` if there is none.
pub fn held(path: &Path, force: bool) -> Result<Option<File>> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(None) };
    if !force {
        bail!("{} exists; --force replaces it, and what is in it is lost", path.display());
    }
    if !found.is_file() {
        bail!("{} is no plain file and is not replaced; choose another name", path.display());
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    if file.try_lock().is_err() {
        return Err(FileError::Locked).with_context(|| format!("cannot replace {}", path.display()));
    }
    Ok(Some(file))
}

/// Makes the disk under another name, and gives it its own when it is whole.
pub fn make(path: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let cannot = || format!("cannot make {}", path.display());
    if path.file_name().is_none() {
        return Err(usage(format!("{} names no file", path.display())));
    }
    let beside = beside(path);
    let made = fill(&beside).and_then(|()| {
        fs::rename(&beside, path)?;
        // The name is to be there after the host died, too.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(File::open(folder)?.sync_all()?)
    });
    if made.is_err() && !matches!(made.as_ref().map_err(|e| e.downcast_ref()), Err(Some(FileError::Exists))) {
        // It may not have been made; the cause is what there is to tell.
        let _ = fs::remove_file(&beside);
    }
    made.with_context(cannot)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".new-{}", std::process::id()));
    PathBuf::from(name)
}

fn fill(path: &Path, planned: &Planned, shards: u32) -> Result<()> {
    let Planned { info, plan, config, .. } = planned;
    let record = Record::new(&plan.name, info.name, config, shards).to_text()?;
    let devices = u16::try_from(shards).context("there are too many shards")?;
    let nands = FileNand::create_several(path, devices, plan.geometry, plan.capabilities, record.as_bytes())?;
    for nand in nands {
        let syncer = nand.syncer();
        on(nand.into(), info, config)?.flush()?;
        syncer.sync()?;
    }
    Ok(())
}

/// An FTL made on a device.
pub fn on(nand: Backing, info: &Info, config: &Config) -> Result<Disk> {
    let Some(entry) = table::find::<AnyBytes>(info.name) else { bail!("there is no FTL {}", info.name) };
    (entry.format)(Flash::new(Box::new(nand)), config).map_err(|error| match error {
        FtlError::Unsupported { .. } => usage(error.to_string()),
        error => error.into(),
    })
}
