//! What can be asked of `openftl watch`.

use super::{Precondition, ReadArgs, ReplayArgs, TuningArgs};
use crate::units::Size;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  openftl watch                                a small device under GeckoFTL, with a guide
  openftl watch --ftl dftl --workload zipf:theta=0.99
  openftl watch sample:sqlite --ftl page       a trace that comes with the program
  openftl watch --replay gecko                 power is cut, and GeckoFTL finds everything again
  openftl watch --replay ID                    an id that openftl crash printed
  openftl watch --frames 12 --step-by chapter  the whole guide as text, for a pipe

Keys: space runs and pauses, o an operation, r a request, c a collection, n the next chapter of the
guide, + and - the speed, ? help, q quit.";

/// Options of `openftl watch`.
///
/// Shows a run step by step: every page of the device, the write points, the victim, what the FTL
/// holds in RAM, and the flash operations of each request with their purpose. A guide explains one
/// structure after the other.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct WatchArgs {
    /// A recorded trace, as `openftl compare` takes one
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// A synthetic workload (openftl list workloads) [default: uniform]
    #[arg(long, short, value_name = "SPEC", conflicts_with = "trace")]
    pub workload: Option<String>,
    /// The FTL (openftl list ftls)
    #[arg(long, short, value_name = "NAME", default_value = "gecko")]
    pub ftl: String,
    /// Device profile, or a TOML file of one (openftl list devices)
    /// [default: 128 blocks of 8 pages; with --capacity or for a trace, demo]
    #[arg(long, short, value_name = "PROFILE|FILE.toml")]
    pub device: Option<String>,
    /// Raw capacity: scales the number of blocks, keeps all else
    #[arg(long, short, value_name = "SIZE")]
    pub capacity: Option<Size>,
    /// Share of the raw capacity that the host sees [default: the profile's]
    #[arg(long, value_name = "RATIO")]
    pub logical_ratio: Option<f64>,
    /// State of the device before the first step
    #[arg(long, value_enum, default_value = "none")]
    pub precondition: Precondition,
    /// Seed of all randomness: the same command with the same seed shows the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Show what an id stands for that `openftl crash` printed: requests, cuts, mounts, outcome.
    /// The name of an FTL stands for one cut and the mount after it
    #[arg(long, value_name = "ID|FTL",
          conflicts_with_all = ["trace", "workload", "ftl", "device", "capacity", "logical_ratio", "precondition",
              "TuningArgs", "ReadArgs", "ReplayArgs"])]
    pub replay: Option<String>,
    /// Print so many frames as text instead of drawing in the terminal
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub frames: Option<u32>,
    /// What is done between two frames
    #[arg(long, value_enum, default_value_t, requires = "frames")]
    pub step_by: StepBy,
    /// Columns and lines of a printed frame
    #[arg(long, value_name = "COLUMNSxLINES", default_value = "120x46", requires = "frames",
          value_parser = columns_and_lines)]
    pub frame_size: (u16, u16),
    /// What the FTL is told.
    #[command(flatten)]
    pub tuning: TuningArgs,
    /// Reading the trace.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Playing the trace.
    #[command(flatten)]
    pub play: ReplayArgs,
}

/// How far one step goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum StepBy {
    /// One flash operation
    Operation,
    /// One request of the host
    #[default]
    Request,
    /// Until a block was collected
    Collection,
    /// Until what the next chapter of the guide is about
    Chapter,
}

fn columns_and_lines(text: &str) -> Result<(u16, u16), String> {
    let (columns, lines) = text.split_once('x').ok_or("write columns and lines as in 120x46")?;
    let number = |part: &str| part.parse::<u16>().map_err(|_| format!("`{part}` is not a number of at most 5 digits"));
    match (number(columns)?, number(lines)?) {
        (columns @ 60..=400, lines @ 20..=200) => Ok((columns, lines)),
        _ => Err("from 60x20 to 400x200 can be printed".to_owned()),
    }
}
