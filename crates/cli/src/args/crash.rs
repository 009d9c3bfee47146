//! Options of `openftl crash`.

use crate::units::Count;
use ::crash::{Fault, Mode, shape_names};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;

const CRASH_EXAMPLES: &str = "\
Examples:
  openftl crash --sample
  openftl crash --ftl gecko --depth 2 --cuts 1M
  openftl crash --ftl page --mode random --faults pairing,programs --shape deep
  openftl crash --replay ID

Exit codes: 0 nothing was lost; 1 a promise was broken; 2 the command line cannot be followed.";

/// Options of `openftl crash`.
#[derive(Args)]
#[command(after_help = CRASH_EXAMPLES)]
pub struct CrashArgs {
    /// FTLs, separated by commas, or `all` (openftl list ftls)
    #[arg(long, short, value_name = "NAMES", value_delimiter = ',', default_value = "all")]
    pub ftl: Vec<String>,
    /// Cut at the operations 1, 2, 4, 8, …; at every sixteenth; at every one; or at one in eight by
    /// chance
    #[arg(long, value_parser = PossibleValuesParser::new(Mode::ALL.map(Mode::name)),
          default_value = Mode::Exhaustive.name())]
    pub mode: String,
    /// Cut points for each FTL: each is mounted, checked, written to, and mounted again
    #[arg(long, value_name = "N", default_value = "100k")]
    pub cuts: Count,
    /// Cuts in a row; from the second on also inside the mount
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=3))]
    pub depth: u32,
    /// Faults beside cuts, separated by commas, or `all` or `none`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "all",
          value_parser = PossibleValuesParser::new(
              ["all", "none"].into_iter().chain(Fault::ALL.map(Fault::name))))]
    pub faults: Vec<String>,
    /// Device to crash on, or `drawn` for one by chance each time [default: each in turn]
    #[arg(long, value_parser = PossibleValuesParser::new(shape_names()))]
    pub shape: Option<String>,
    /// Steps of a workload
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub steps: u32,
    /// Leave out the battery that some FTLs assume: what they lose is counted, and is no failure
    #[arg(long)]
    pub no_battery: bool,
    /// Seed: the same command with the same seed explores the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// FTLs at once [default: the processor's threads]; the outcome is the same
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Wear one page in N, try one image in N, and cut one device in N a thousand times; the next
    /// seed takes the next ones
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub one_in: u32,
    /// Some seconds of everything for each FTL
    #[arg(long, conflicts_with_all = ["mode", "cuts", "depth", "steps"])]
    pub sample: bool,
    /// Do again what an id stands for, as a failure printed it
    #[arg(long, value_name = "ID",
          conflicts_with_all = ["ftl", "mode", "cuts", "depth", "faults", "shape", "steps", "no_battery", "seed", "jobs", "one_in", "sample"])]
    pub replay: Option<String>,
    /// Explore each fault alone, then all at once, and write what each cost each FTL as a table to
    /// this Markdown file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub promises: Option<PathBuf>,
    /// Tell what a replay does: each request, cut and mount, and how it came out
    #[arg(long, requires = "replay")]
    pub trace: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}
