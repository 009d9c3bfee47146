//! What can be asked of `openftl trace`.

use super::ReadArgs;
use crate::units::{Count, Size};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Options of `openftl trace`.
#[derive(Args)]
pub struct TraceArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub command: TraceCommand,
}

/// What can be done with a trace.
#[derive(Subcommand)]
pub enum TraceCommand {
    /// Counts, sizes, mix, footprint, skew, reuse, arrivals
    Info {
        /// The trace
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Reading it.
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Write it in another format
    Convert {
        /// The trace
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The format to write
        #[arg(long, value_enum)]
        to: Target,
        /// File to write [default: standard output]
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
        /// Reading it.
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Write the requests of a synthetic workload, for another simulator or for fio
    Generate {
        /// The workload, as in `zipf:theta=0.99,reads=30` (openftl list workloads)
        #[arg(value_name = "SPEC")]
        workload: String,
        /// So many requests, as in 500k or 2M
        #[arg(long, value_name = "N", default_value = "100k")]
        requests: Count,
        /// Bytes that the host sees, as in 1GiB
        #[arg(long, value_name = "SIZE", default_value = "1GiB")]
        logical: Size,
        /// Bytes of a page, which sizes without a unit count in
        #[arg(long, value_name = "SIZE", default_value = "4KiB")]
        page: Size,
        /// Seed: the same command with the same seed gives the same requests
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// The format to write
        #[arg(long, value_enum, default_value = "csv")]
        to: Target,
        /// File to write [default: standard output]
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
    },
    /// Reduce it to a profile that generates as many requests like it as wanted
    Fit {
        /// The trace
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// File to write; run it with --workload profile:FILE [default: standard output]
        #[arg(long, short, value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
        /// Run FTLs under the trace and under the profile, on the same device, and print how far
        /// apart they come
        #[arg(long, requires = "out")]
        check: bool,
        /// FTLs of --check, separated by commas (openftl list ftls)
        #[arg(
            long,
            short,
            value_name = "NAMES",
            value_delimiter = ',',
            requires = "check",
            default_value = "page,dftl,fast,janus"
        )]
        ftl: Vec<String>,
        /// Print what --check finds as one JSON object
        #[arg(long, requires = "check")]
        json: bool,
        /// Reading it.
        #[command(flatten)]
        read: ReadArgs,
    },
}

/// Formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// fio I/O log, version 2: requests, and waits as fio plays them
    #[value(name = "fio-v2", alias = "fio2")]
    FioV2,
    /// fio I/O log, version 3: requests with times
    #[value(name = "fio-v3", alias = "fio3")]
    FioV3,
    /// CSV with everything
    Csv,
    /// MSR Cambridge CSV: reads and writes
    Msr,
    /// SPC: reads and writes of whole sectors
    Spc,
    /// Five columns: reads and writes of whole sectors
    #[value(name = "fivecolumn")]
    FiveColumn,
}
