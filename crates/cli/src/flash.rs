//! Disks on raw flash behind Linux MTD (`/dev/mtdN`).

use crate::args::FormatArgs;
use crate::error::usage;
use crate::format::{self, Planned};
use crate::image::{self, Image, Record};
use crate::{device, output};
use anyhow::{Context, Result, bail};
use mtd::{CharDevice, Chip, MtdNand};
use nand::{Access, Capabilities, MemNand, Timing};
use sim::DevicePlan;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The share of flash that a disk gets if nobody says.
const LOGICAL_RATIO: f64 = 0.7;

/// Whether this is a character device, or a name that only flash has.
pub fn is_one(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.starts_with("/dev/mtd"))
        || fs::metadata(path).is_ok_and(|found| found.file_type().is_char_device())
}

/// Opens the disk on flash.
pub fn open(path: &Path, access: Access) -> Result<Image> {
    let (access, mountable) = match access {
        Access::ReadWrite => (mtd::Access::ReadWrite, true),
        Access::ReadOnly | Access::Overlay => (mtd::Access::ReadOnly, false),
    };
    let nand = MtdNand::open(path, access)?;
    let owner = nand.owner().to_vec();
    image::of_devices(vec![nand.into()], &owner, mountable).with_context(|| format!("cannot open {}", path.display()))
}

/// Makes a disk on flash; whatever was on it is gone.
pub fn format(args: &FormatArgs) -> Result<()> {
    let path = args.image.display();
    for (option, given) in [("--device", args.disk.device.is_some()), ("--capacity", args.disk.capacity.is_some())] {
        if given {
            return Err(usage(format!("{option} means nothing here: {path} is flash, and has a size of its own")));
        }
    }
    if args.shards > 1 {
        return Err(usage(format!(
            "--shards {} is for files: {path} is flash, of which Linux does one operation at a time",
            args.shards
        )));
    }
    let ratio = device::checked_ratio(args.disk.logical_ratio.unwrap_or(LOGICAL_RATIO))?;
    let chip = CharDevice::open(&args.image, mtd::Access::ReadWrite)?;
    let geometry = mtd::geometry(&chip.shape())?;
    let name = format!("mtd:{}", chip.name());
    // Nobody knows how long operations of this chip take, and nobody asks.
    let timing = Timing::NONE;
    let plan = DevicePlan::new(&name, geometry.dimensions(), Capabilities::MODERN, timing, None, ratio)?;
    let planned = format::tuned(&args.disk, plan, ratio)?;
    format::check_durable(&planned.info)?;
    let Planned { info, plan, config, .. } = &planned;
    // What does not fit is to be refused before anything is erased.
    format::on(MemNand::new(plan.geometry, plan.capabilities).into(), info, config)?;
    if !args.force {
        bail!("{path} is flash; --force erases all of it, and what is on it is lost");
    }
    let record = Record::new(&plan.name, info.name, config, 1).to_text()?;
    let nand = MtdNand::create_on(chip, record.as_bytes()).with_context(|| format!("cannot make {path}"))?;
    format::on(nand.into(), info, config)?.flush().with_context(|| format!("cannot make {path}"))?;
    output::print(&format::made(&args.image, &planned, 1))
}
