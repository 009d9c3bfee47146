//! What can be asked about disks in files.

use super::TuningArgs;
use crate::units::Size;
use clap::{Args, ValueHint};
use std::path::PathBuf;

const FORMAT_EXAMPLES: &str = "\
Examples:
  openftl format disk.nand
  openftl format disk.nand --device modern-tlc --capacity 64GiB --ftl gecko --gecko-packed
  openftl format disk.nand --shards 4
  openftl format disk.nand --ftl lftl
  openftl format disk.nand --force";

/// Options of `openftl format`.
#[derive(Args)]
#[command(after_help = FORMAT_EXAMPLES)]
pub struct FormatArgs {
    /// The file to make, which takes space as it is written; or raw flash behind Linux MTD
    /// (/dev/mtdN), which is erased
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub image: PathBuf,
    /// Replace the file if there is one, or erase the flash
    #[arg(long)]
    pub force: bool,
    /// Stripe the disk over N devices in the file, each with its part of the capacity and an FTL of
    /// its own: a server uses them side by side
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub shards: u32,
    /// What is made.
    #[command(flatten)]
    pub disk: DiskArgs,
}

/// What a new disk is: a device with an FTL on it.
#[derive(Args, Clone)]
pub struct DiskArgs {
    /// The FTL (openftl list ftls), or lftl; in a file one that survives power loss
    /// [default: gecko]
    #[arg(long, short, value_name = "NAME")]
    pub ftl: Option<String>,
    /// Device profile, or a TOML file of one (openftl list devices) [default: demo]
    #[arg(long, short, value_name = "PROFILE|FILE.toml")]
    pub device: Option<String>,
    /// Raw capacity: scales the number of blocks, keeps all else [default: the profile's]
    #[arg(long, short, value_name = "SIZE")]
    pub capacity: Option<Size>,
    /// Share of the raw capacity that the host sees [default: the profile's]
    #[arg(long, value_name = "RATIO")]
    pub logical_ratio: Option<f64>,
    /// What the FTL is told.
    #[command(flatten)]
    pub tuning: TuningArgs,
}

/// Options of `openftl inspect`.
#[derive(Args)]
pub struct InspectArgs {
    /// The file of the disk, or flash (/dev/mtdN); it is not changed
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub image: PathBuf,
    /// Do not count live pages, which takes a read of every logical page
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Options of `openftl check`.
#[derive(Args)]
pub struct CheckArgs {
    /// The file of the disk; it is not changed
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub image: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
