//! Options of the commands that are about papers: their figures and their formulas.

use super::TRACES;
use crate::units::{Count, Share, Size};
use clap::{Args, ValueHint};
use std::path::PathBuf;

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  openftl reproduce list
  openftl reproduce gecko/fig9
  openftl reproduce gecko/fig10 gecko/fig11 --scale 1/64 --out figures
  openftl reproduce all --json > figures.json
  openftl reproduce gecko/fig13 --scale full --only ib-ftl,gecko
  openftl reproduce lftl/table2 --real-time

Each finished run is kept in the folder `runs` of --out. The same program takes a run with the same
settings from there, so an interrupted command goes on where it was and figures share runs; the
last line says how many were taken. A program built anew takes none, and runs of recorded traces are
done each time.";

/// Options of `openftl reproduce`.
#[derive(Args)]
#[command(after_help = REPRODUCE_EXAMPLES)]
pub struct ReproduceArgs {
    /// Figures by name, `all`, or `list`
    #[arg(value_name = "FIGURE", required = true)]
    pub figures: Vec<String>,
    /// Size of the simulated device over the paper's: a fraction, or full
    #[arg(long, value_name = "SHARE", default_value = "1/256")]
    pub scale: Share,
    /// Folder for CSV, SVG, HTML and finished runs; made if it is not there
    #[arg(long, short, value_name = "DIR", default_value = "figures", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Folder of recorded traces, for figures that can use them
    #[arg(long, value_name = "DIR", env = TRACES, value_hint = ValueHint::DirPath)]
    pub traces: Option<PathBuf>,
    /// Runs at once, as far as memory allows [default: the processor's threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Do every run anew, also those that earlier calls kept
    #[arg(long)]
    pub fresh: bool,
    /// Do and keep only the runs of these lines or bars, and make no figure: several calls share
    /// the work of one
    #[arg(long, value_name = "SERIES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Make LFTL's figures in real time: its threads sleep as long as the card is busy, and results
    /// vary with what else the computer does
    #[arg(long)]
    pub real_time: bool,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

const MODEL_EXAMPLES: &str = "\
Examples:
  openftl model
  openftl model --capacity 8TiB --ftl lazy,gecko
  openftl model --blocks 65536 --pages-per-block 256 --page-size 16KiB --cache 1MiB --json
  openftl model --rates zipf:theta=0.99 --rates hotcold --over-provisioning 7,28";

/// Options of `openftl model`.
#[derive(Args)]
#[command(after_help = MODEL_EXAMPLES)]
pub struct ModelArgs {
    /// Raw capacity; sets the number of blocks [default: 2TiB]
    #[arg(long, short, value_name = "SIZE", conflicts_with = "blocks")]
    pub capacity: Option<Size>,
    /// K: blocks
    #[arg(long, value_name = "N")]
    pub blocks: Option<Count>,
    /// B: pages in a block
    #[arg(long, value_name = "N", default_value = "128")]
    pub pages_per_block: Count,
    /// P: size of a page
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    pub page_size: Size,
    /// R: share of the raw capacity that the host sees
    #[arg(long, value_name = "RATIO", default_value_t = 0.7)]
    pub logical_ratio: f64,
    /// C: RAM for cached mapping entries of 8 bytes
    #[arg(long, value_name = "SIZE", default_value = "4MiB")]
    pub cache: Size,
    /// Share of the cached entries that may be dirty where the FTL caps them [default: 0.1]
    #[arg(long, value_name = "RATIO")]
    pub dirty_ratio: Option<f64>,
    /// Size ratio T between levels of Logarithmic Gecko
    #[arg(long = "gecko-t", value_name = "T", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..=64))]
    pub t: u64,
    /// Partitions S of a block's bitmap; 0 takes pages per block / 32
    #[arg(long = "gecko-s", value_name = "S", default_value_t = 0)]
    pub s: u64,
    /// Time of a page read, microseconds
    #[arg(long, value_name = "US", default_value_t = 100.0)]
    pub read_us: f64,
    /// Time of a spare area read, microseconds
    #[arg(long, value_name = "US", default_value_t = 3.0)]
    pub spare_read_us: f64,
    /// Time of a page program, microseconds
    #[arg(long, value_name = "US", default_value_t = 1000.0)]
    pub write_us: f64,
    /// FTLs, separated by commas [default: all of the paper's comparison]
    #[arg(long, short, value_name = "NAMES", value_delimiter = ',')]
    pub ftl: Vec<String>,
    /// Write-amplification of separate logs.
    #[command(flatten)]
    pub logs: LogsArgs,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Options that ask for the write-amplification of separate logs instead of the paper's formulas.
#[derive(Args)]
#[command(next_help_heading = "Separate logs")]
pub struct LogsArgs {
    /// Print what one log and separate logs program under these independent writes, instead:
    /// uniform, zipf or hotcold with its options; may be given several times
    #[arg(
        long,
        value_name = "SPEC",
        conflicts_with_all = [
            "capacity", "blocks", "pages_per_block", "page_size", "logical_ratio", "cache", "dirty_ratio", "t", "s",
            "read_us", "spare_read_us", "write_us", "ftl"
        ]
    )]
    pub rates: Vec<String>,
    /// Space beyond that of the logical pages, percent of it, separated by commas
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "7,15,30", requires = "rates")]
    pub over_provisioning: Vec<f64>,
    /// Logical pages [default: those of 8 GB in pages of 4 KiB]
    #[arg(long, value_name = "N", default_value = "1953125", hide_default_value = true, requires = "rates")]
    pub pages: Count,
}
