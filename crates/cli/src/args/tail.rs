//! What can be asked of `openftl tail`.

use super::{BufferArgs, Gc, Precondition, ReadArgs, ReplayArgs, TuningArgs};
use crate::units::{Count, PageTimes, Size, Time};
use clap::{Args, ValueHint};
use std::num::NonZeroU32;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  openftl tail
  openftl tail --ftl gecko --load 70 --gc idle
  openftl tail --workload zipf:theta=0.99,reads=50 --device modern-tlc --html tail.html
  openftl tail sample:sqlite --ftl page,gecko --repeat 20 --json > tail.json";

/// Options of `openftl tail`.
///
/// First the rate that each FTL sustains is found: the largest at which requests that arrive at
/// random times (a Poisson process) do not queue up more and more. Closed loops of 32, 128 and 1024
/// clients bound it. Then requests arrive at shares of that rate.
/// Each such run is done twice from the same start: once as it is, and once with collections that
/// take no time. Latencies are given in time, and as multiples of those without collection.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct TailArgs {
    /// A recorded trace, as `openftl compare` takes one; its times of arrival are not used
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// A synthetic workload (openftl list workloads) [default: uniform]
    #[arg(long, short, value_name = "SPEC", conflicts_with = "trace")]
    pub workload: Option<String>,
    /// FTLs, separated by commas (openftl list ftls)
    #[arg(long, short, value_name = "NAMES", value_delimiter = ',', default_value = "page,dftl,gecko")]
    pub ftl: Vec<String>,
    /// Shares of the sustained rate at which requests arrive, percent
    #[arg(long, value_name = "PERCENTS", value_delimiter = ',', default_value = "30,50,70,90",
          value_parser = clap::value_parser!(u32).range(1..=99))]
    pub load: Vec<u32>,
    /// Device profile, or a TOML file of one (openftl list devices)
    #[arg(long, short, value_name = "PROFILE|FILE.toml", default_value = "demo")]
    pub device: String,
    /// Raw capacity: scales the number of blocks, keeps all else
    /// [default: 1GiB; for a trace, what it touches]
    #[arg(long, short, value_name = "SIZE")]
    pub capacity: Option<Size>,
    /// Share of the raw capacity that the host sees [default: the profile's]
    #[arg(long, value_name = "RATIO")]
    pub logical_ratio: Option<f64>,
    /// End each run after so many pages written, as in 500k or 2M
    /// [default: twice the visible pages; for a trace, its end]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub writes: Option<Count>,
    /// Requests at the beginning of a run whose latency does not count
    /// [default: one for twenty visible pages]
    #[arg(long, value_name = "N")]
    pub warm_up: Option<Count>,
    /// State of the device before each run
    #[arg(long, value_enum, default_value_t)]
    pub precondition: Precondition,
    /// Seed of all randomness: the same command with the same seed gives the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Runs at once [default: one a processor]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<NonZeroU32>,
    /// Collect garbage when a write needs space, also whenever the device is idle, also behind
    /// requests while few blocks are free, or bank by bank as LFTL does [default: foreground]
    #[arg(long, value_enum)]
    pub gc: Option<Gc>,
    /// Banks that are collected at once at most, with --gc pllgc or adaptive [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub collectors: Option<u32>,
    /// Time that the controller adds to every request, however many it works on [default: 0]
    #[arg(long, value_name = "TIME")]
    pub controller: Option<Time>,
    /// Time that the FTL works on each page that is read and on each that is written, one after
    /// another, as in 147us,85us [default: 0]
    #[arg(long, value_name = "READ,WRITE")]
    pub ftl_time: Option<PageTimes>,
    /// Reads of requests interrupt running programs and erases, each of which costs it so much
    /// [default: they wait]
    #[arg(long, value_name = "TIME")]
    pub suspend: Option<Time>,
    /// Reads of requests wait their turn behind programs, erases and copies
    #[arg(long)]
    pub no_read_priority: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
    /// Write a page with charts to this file as well
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// The write buffer.
    #[command(flatten)]
    pub buffer: BufferArgs,
    /// What the FTLs are told.
    #[command(flatten)]
    pub tuning: TuningArgs,
    /// Reading the trace.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Playing the trace.
    #[command(flatten)]
    pub play: ReplayArgs,
}
