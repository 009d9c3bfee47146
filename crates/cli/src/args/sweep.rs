//! What can be asked of `openftl sweep`.

use clap::{Args, ValueHint};
use std::num::NonZeroU32;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  openftl sweep --logical-ratio 0.6:0.9:0.1 --seed 1..4
  openftl sweep --ftl all --workload uniform,zipf:theta={0.5,0.99} --out runs.jsonl --csv runs.csv
  openftl sweep --ftl gecko --vary victim=greedy,cost-benefit --vary cache=16KiB,64KiB --html sweep.html
  openftl sweep sample:sqlite sample:git --ftl page-mapped --out runs.jsonl --resume
  openftl sweep --ftl page,gecko --vary queue-depth=1,32,1024 -- --timing queued --capacity 1GiB";

/// Options of `openftl sweep`.
///
/// Lists are separated by commas. `0.6:0.9:0.1` is every number from 0.6 to 0.9 in steps of 0.1,
/// `1..4` every whole number from 1 to 4, and `zipf:theta={0.5,0.99}` a text for each choice.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct SweepArgs {
    /// Recorded traces, each as `openftl compare` takes one
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub traces: Vec<PathBuf>,
    /// Synthetic workloads (openftl list workloads) [default: uniform, if there is no trace]
    #[arg(long, short, value_name = "LIST")]
    pub workload: Vec<String>,
    /// FTLs: names (openftl list ftls), or `all`, `page-mapped` or `log-block`
    #[arg(long, short, value_name = "LIST", default_value = "page,dftl,gecko")]
    pub ftl: String,
    /// Shares of the raw capacity that the host sees [default: the profile's]
    #[arg(long, value_name = "LIST")]
    pub logical_ratio: Option<String>,
    /// Seeds: results are averaged over them
    #[arg(long, value_name = "LIST", default_value = "1")]
    pub seed: String,
    /// Another option of `openftl compare` and its values; may be given several times
    #[arg(long, value_name = "OPTION=LIST")]
    pub vary: Vec<String>,
    /// Runs at once [default: one a processor]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<NonZeroU32>,
    /// Write each run as a line of JSON to this file, as soon as it has ended
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Take runs of this very program and the same settings from the file of --out
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Write a flat row for each run to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,
    /// Write charts with a line for each FTL to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
    /// Options of `openftl compare` for every run
    #[arg(last = true, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub every: Vec<String>,
}
