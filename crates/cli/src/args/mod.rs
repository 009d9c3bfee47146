//! What can be asked of `openftl`: the definition from which help, completions and man pages are
//! made.

mod crash;
mod image;
mod papers;
mod serve;
mod sweep;
mod tail;
mod trace;
mod watch;

pub use self::crash::CrashArgs;
use crate::units::{Count, Groups, PageTimes, Room, Size, Time};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use ftl::victim::by_bank::Policy;
pub use image::{CheckArgs, DiskArgs, FormatArgs, InspectArgs};
pub use papers::{LogsArgs, ModelArgs, ReproduceArgs};
pub use serve::{BankedArgs, ServeArgs};
use std::num::NonZeroU32;
use std::path::PathBuf;
pub use sweep::SweepArgs;
pub use tail::TailArgs;
pub use trace::{Target, TraceArgs, TraceCommand};
pub use watch::{StepBy, WatchArgs};

/// Compare flash translation layers on a workload or on your own trace.
///
/// `openftl compare` alone runs page mapping, DFTL and GeckoFTL on a simulated device and shows
/// what each costs. `openftl watch` shows one of them at work, with a guide.
///
/// Exit codes: 0 done; 1 failed (a file cannot be read, a trace is malformed, a run found wrong
/// data); 2 the command line cannot be followed (unknown names, values out of range, options that
/// contradict each other).
#[derive(Parser)]
#[command(name = "openftl", version, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Run FTLs on the same device and workload, and show what each costs
    Compare(Box<CompareArgs>),
    /// Show a run step by step in the terminal, with a guide to what an FTL does
    Watch(Box<WatchArgs>),
    /// Run every combination of FTLs, workloads, sizes and seeds, and average over seeds
    Sweep(Box<SweepArgs>),
    /// Measure latency at shares of the rate that an FTL sustains, with and without collection
    Tail(Box<TailArgs>),
    /// Cut power at every flash operation, lay other faults over it, and check that nothing is lost
    Crash(Box<CrashArgs>),
    /// Make an empty disk in a file: a device with an FTL on it
    Format(Box<FormatArgs>),
    /// Describe a disk in a file, and what a mount of it would do
    Inspect(InspectArgs),
    /// Check a disk in a file: everything reachable, nothing doubly used
    Check(CheckArgs),
    /// Serve a disk to other programs over NBD: one in a file, or a new one in memory
    Serve(Box<ServeArgs>),
    /// List what can be named: FTLs, workloads, trace formats, devices, policies
    List(ListArgs),
    /// Describe, convert or fit a recorded trace, or generate one
    Trace(TraceArgs),
    /// Make figures of papers again, with a verdict on each of their claims
    Reproduce(ReproduceArgs),
    /// Print formulas: RAM and recovery of FTLs by GeckoFTL's paper, or what separate logs program
    Model(ModelArgs),
    /// Measure how fast the simulator is, against its targets
    Bench(BenchArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the man page, or write one for each command
    Man {
        /// Folder to write them to
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  openftl compare
  openftl compare --workload zipf:theta=0.99,reads=30 --timing queued
  openftl compare sample:sqlite
  openftl compare --ftl page,gecko --device modern-tlc --capacity 8GiB --html report.html
  openftl compare prxy_0.csv.gz --ftl dftl --cache 64KiB --json > result.json";

/// Options of `openftl compare`.
#[derive(Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareArgs {
    /// A recorded trace, plain or gz, zst, xz, bz2, its format found by its contents; - for
    /// standard input; or one that comes with the program, as sample:NAME (openftl list samples)
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// A synthetic workload, as in `zipf:theta=0.99,reads=30` (openftl list workloads)
    /// [default: uniform]
    #[arg(long, short, value_name = "SPEC", conflicts_with = "trace")]
    pub workload: Option<String>,
    /// FTLs, separated by commas (openftl list ftls)
    #[arg(long, short, value_name = "NAMES", value_delimiter = ',', default_value = "page,dftl,gecko")]
    pub ftl: Vec<String>,
    /// Device profile, or a TOML file of one (openftl list devices)
    #[arg(long, short, value_name = "PROFILE|FILE.toml", default_value = "demo")]
    pub device: String,
    /// Raw capacity: scales the number of blocks, keeps all else
    /// [default: the profile's, 4GiB for demo; for a trace, what it touches]
    #[arg(long, short, value_name = "SIZE")]
    pub capacity: Option<Size>,
    /// Share of the raw capacity that the host sees [default: the profile's]
    #[arg(long, value_name = "RATIO")]
    pub logical_ratio: Option<f64>,
    /// End after so many pages written, as in 500k or 2M
    /// [default: twice the visible pages; for a trace, its end]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub writes: Option<Count>,
    /// State of the device before anything is measured
    #[arg(long, value_enum, default_value_t)]
    pub precondition: Precondition,
    /// How many reads take as long as one program, for the column that counts reads
    /// [default: the device's times]
    #[arg(long, value_name = "RATIO")]
    pub delta: Option<f64>,
    /// Seed of all randomness: the same command with the same seed gives the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Runs at once [default: one a processor]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<NonZeroU32>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
    /// Leave the timelines of --json empty, most of it by far
    #[arg(long, requires = "json")]
    pub no_timeline: bool,
    /// Write a report with charts to this file as well
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// The write buffer.
    #[command(flatten)]
    pub buffer: BufferArgs,
    /// Time.
    #[command(flatten)]
    pub time: TimeArgs,
    /// What the FTLs are told.
    #[command(flatten)]
    pub tuning: TuningArgs,
    /// Reading the trace.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Playing the trace.
    #[command(flatten)]
    pub replay: ReplayArgs,
}

/// What gathers writes before the FTLs.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Write buffer")]
pub struct BufferArgs {
    /// RAM before the FTL that gathers writes by page, as in 256KiB or 64pages: parts of a page
    /// become one program, and overwrites cost none. Only a flush makes what it holds durable
    /// [default: 0, none]
    #[arg(long, value_name = "SIZE")]
    pub write_buffer: Option<Room>,
    /// Which pages leave the write buffer when another one needs room [default: lru]
    #[arg(long, value_enum, value_name = "NAME")]
    pub write_buffer_policy: Option<BufferPolicy>,
}

/// Which pages of a write buffer leave first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BufferPolicy {
    /// The page that entered first, of those written whole if there are any
    Fifo,
    /// The page that was used longest ago
    Lru,
    /// All pages of the logical block that was used longest ago, or that was written in order
    #[value(alias = "bplru")]
    BlockLru,
}

impl BufferPolicy {
    /// As buffers have it
    pub fn replacement(self) -> sim::Replacement {
        match self {
            Self::Fifo => sim::Replacement::Fifo,
            Self::Lru => sim::Replacement::Lru,
            Self::BlockLru => sim::Replacement::BlockLru,
        }
    }
}

/// Whether time passes, and how requests arrive.
#[derive(Args, Default)]
#[command(next_help_heading = "Time")]
pub struct TimeArgs {
    /// Count operations only, or model queues, dies and channels in virtual time
    #[arg(long, value_enum, default_value_t)]
    pub timing: Timing,
    /// Requests in the device at once: each of N clients sends its next when its last is done
    /// [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub queue_depth: Option<u32>,
    /// Requests arrive at the workload's own times, whether or not the device keeps up
    #[arg(long)]
    pub open_loop: bool,
    /// Multiplies arrival times of an open loop: 0.5 plays twice as fast [default: 1]
    #[arg(long, value_name = "FACTOR")]
    pub time_scale: Option<f64>,
    /// Collect garbage when a write needs space, or also as named [default: foreground]
    #[arg(long, value_enum)]
    pub gc: Option<Gc>,
    /// Banks that are collected at once at most, with --gc pllgc or adaptive [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub collectors: Option<u32>,
    /// Time that a client of a closed loop waits after a request has ended, such as 200us or 1ms
    /// [default: 0]
    #[arg(long, value_name = "TIME")]
    pub think: Option<Time>,
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
}

/// What FTLs are told.
#[derive(Args, Clone)]
#[command(next_help_heading = "FTLs")]
pub struct TuningArgs {
    /// RAM for cached mapping entries of 8 bytes, for FTLs that have such a cache
    /// [default: 1 entry per 716 pages]
    #[arg(long, value_name = "SIZE")]
    pub cache: Option<Size>,
    /// Cached mapping entries in a segmented LRU order, so many percent of them protected, as in
    /// DFTL's own paper [default: LRU; 80 if no number is given]
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "80",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub segmented_lru: Option<u32>,
    /// Cached mapping entries in sets of N ways, each set in an LRU order of its own, as in the
    /// cache of a processor: an entry takes 7 bytes, not 23 [default: one list in LRU order]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=16))]
    pub cache_ways: Option<u32>,
    /// Victim policy: which block is collected next (openftl list victims) [default: greedy]
    #[arg(long, value_name = "NAME")]
    pub victim: Option<String>,
    /// Placement policy: which stream a page is written to (openftl list placements)
    /// [default: each FTL's own; split for those of papers]
    #[arg(long, value_name = "NAME")]
    pub placement: Option<String>,
    /// Groups that pages are parted into by their age, where placement does so (asa) [default: 3]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..=8))]
    pub age_groups: Option<u32>,
    /// Where the maps of an FTL with log blocks are: nonvolatile costs nothing, as in the papers'
    /// simulators [default: flash]
    #[arg(long, value_enum)]
    pub maps: Option<MapsArg>,
    /// Groups of N neighbouring logical blocks with at most K extra blocks each
    /// [default: each FTL's own]
    #[arg(long, value_name = "N:K")]
    pub groups: Option<Groups>,
    /// Level wear: data at rest moves when its block was erased N times less than the average
    /// [default: no levelling; 8 if N is left out]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "8",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub level_wear: Option<u32>,
    /// Spare areas read to find such blocks for every page programmed [default: 1]
    #[arg(long, value_name = "N", requires = "level_wear", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub wear_scans: Option<u32>,
    /// Translation pages that are used often say so when they are programmed, and a mount caches
    /// their entries [default: each FTL's own way; false for those of papers]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub warm: Option<bool>,
    /// Page-validity store: how dead pages are known (openftl list stores)
    /// [default: each FTL's own]
    #[arg(long, value_name = "NAME")]
    pub validity: Option<String>,
    /// Blocks that each stream fills at once, on different dies; or as many as the device has
    /// planes, which then program together where its profile says multi_plane
    /// [default: 1; all dies in timed comparisons]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub lanes: Option<u32>,
    /// GeckoFTL.
    #[command(flatten)]
    pub gecko: GeckoArgs,
    /// Janus-FTL.
    #[command(flatten)]
    pub janus: JanusArgs,
}

/// How Logarithmic Gecko is tuned. What is not given is each FTL's own: the paper's, unless its row
/// has a preset (openftl list ftls).
#[derive(Args, Clone)]
#[command(next_help_heading = "GeckoFTL")]
pub struct GeckoArgs {
    /// Size ratio T between levels [default: 2, as in the paper]
    #[arg(long = "gecko-t", value_name = "T", value_parser = clap::value_parser!(u32).range(2..=64))]
    pub t: Option<u32>,
    /// Partitions S of a block's bitmap; 0 takes pages per block / 32 [default: 0]
    #[arg(long = "gecko-s", value_name = "S")]
    pub s: Option<u32>,
    /// Merge runs two at a time instead of all at once
    /// [default: each FTL's own way; false for all]
    #[arg(long = "gecko-two-way", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub two_way: Option<bool>,
    /// Pages of entries that the buffer in RAM holds [default: 1, as in the paper]
    #[arg(long = "gecko-buffer", value_name = "PAGES", value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub buffer: Option<u32>,
    /// Pack entries: each as short as what it says, instead of a key and a bitmap
    /// [default: each FTL's own way; false for those of papers]
    #[arg(long = "gecko-packed", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub packed: Option<bool>,
    /// RAM for a filter by which queries pass over shorter runs
    /// [default: each FTL's own; none for those of papers]
    #[arg(long = "gecko-filter", value_name = "SIZE")]
    pub filter: Option<Size>,
    /// Spread merges: so many pages of a merge for each new entry of the buffer, or as many as it
    /// takes to keep up [default: a merge is done inside one write, as in the paper]
    #[arg(long = "gecko-spread", value_name = "PAGES", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub spread: Option<u32>,
}

/// How Janus-FTL goes beyond its paper.
#[derive(Args, Clone)]
#[command(next_help_heading = "Janus-FTL")]
pub struct JanusArgs {
    /// Size of the page-mapped area of janus-fixed: logical blocks in it, as a share of them and
    /// the over-provisioned blocks, percent [default: 75]
    #[arg(long = "janus-utilisation", value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub utilisation: Option<u32>,
    /// Which logical block leaves the page-mapped area: the one written least recently, or by what
    /// gathering it costs
    /// [default: recency]
    #[arg(long = "janus-defuse", value_enum)]
    pub defuse: Option<Defuse>,
    /// Logical blocks, from the one written least recently on, of which the cheapest to gather is
    /// taken [default: 16]
    #[arg(long = "janus-window", value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub window: Option<u32>,
    /// Learn how full collected blocks are and what a write costs at each size, instead of trusting
    /// the paper's equations 4 and 5 for every workload
    #[arg(long = "janus-learn")]
    pub learn: bool,
    /// Map by block for good all but PERCENT of the logical blocks: a smaller page map [default: a
    /// page map of all, as in the paper; 25 if PERCENT is left out]
    #[arg(long = "janus-block-map", value_name = "PERCENT", num_args = 0..=1, require_equals = true,
          default_missing_value = "25", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub block_map: Option<u32>,
}

/// Which logical block leaves the page-mapped area of Janus-FTL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Defuse {
    /// The one written least recently
    #[default]
    Recency,
    /// Of some written least recently the one cheapest to gather, by its pages and how empty the
    /// blocks are that they are in
    Validity,
}

/// The environment's variable that names a folder of recorded traces.
pub const TRACES: &str = "OPENFTL_TRACES";

/// What the trace file does not say.
#[derive(Args, Clone)]
#[command(next_help_heading = "Reading a trace")]
pub struct ReadArgs {
    /// Format (openftl list traces) [default: found by the file's contents]
    #[arg(long, value_name = "NAME")]
    pub trace_format: Option<String>,
    /// Unit of times in the five-column form: ns, 100ns, us, ms or s; of waits in fio's version 2:
    /// ms since the start, or us since the last [default: guessed, and said]
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<String>,
    /// Unit of addresses in the five-column form: bytes, sectors or pages
    /// [default: guessed, and said]
    #[arg(long, value_name = "UNIT")]
    pub lba_unit: Option<String>,
    /// Unit of sizes in the five-column form: bytes, sectors or pages [default: guessed, and said]
    #[arg(long, value_name = "UNIT")]
    pub size_unit: Option<String>,
    /// Meaning of the flag in the five-column form: 1=read or 1=write [default: 1=read]
    #[arg(long, value_name = "MEANING")]
    pub flag: Option<String>,
    /// Keep the requests of this device or volume only
    #[arg(long, value_name = "NAME")]
    pub device_filter: Option<String>,
    /// Skip and count malformed lines instead of failing on the first
    #[arg(long)]
    pub lenient: bool,
    /// Read so many requests and no more
    #[arg(long, value_name = "N")]
    pub limit: Option<Count>,
    /// Add so many bytes to every address; trace info says by how much a trace is unaligned
    #[arg(long, value_name = "SIZE")]
    pub shift: Option<Size>,
}

/// How a trace is played.
#[derive(Args, Clone)]
#[command(next_help_heading = "Playing a trace")]
pub struct ReplayArgs {
    /// How often it is played in the measured part
    /// [default: once; with --writes, until they are done]
    #[arg(long, value_name = "TIMES", requires = "trace", value_parser = clap::value_parser!(u64).range(1..))]
    pub repeat: Option<u64>,
    /// How its addresses become addresses of the device
    #[arg(long, value_enum, default_value_t, requires = "trace")]
    pub map: Map,
}

/// How a trace is mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Map {
    /// Touched pages are packed side by side: gaps vanish, overwrites and neighbours stay
    #[default]
    Dense,
    /// Addresses modulo the visible space
    Fold,
    /// Addresses scaled to the visible space
    Scale,
}

/// Whether time passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Timing {
    /// Operations are counted, nothing more
    #[default]
    None,
    /// Virtual time with queues, dies and channels; gives latencies
    Queued,
}

/// When garbage is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Gc {
    /// When a write finds space short
    Foreground,
    /// Also when no request is in the device
    Idle,
    /// Also while few blocks are free, behind the requests in the device
    Ahead,
    /// Also before a write opens a block in a bank that is short, in that bank
    Npgc,
    /// Also in banks that are short, beside writes to others
    Pllgc,
    /// As pllgc, with fewer collectors while more requests are in the device
    Adaptive,
}

impl Gc {
    /// As the simulator has it, with so many collectors
    pub fn mode(self, collectors: Option<u32>) -> sim::GcMode {
        let by_bank = |policy| sim::GcMode::ByBank { policy, collectors: collectors.unwrap_or(8) };
        match self {
            Self::Foreground => sim::GcMode::Foreground,
            Self::Idle => sim::GcMode::Idle,
            Self::Ahead => sim::GcMode::Ahead,
            Self::Npgc => by_bank(Policy::WritePath),
            Self::Pllgc => by_bank(Policy::Parallel),
            Self::Adaptive => by_bank(Policy::Adaptive),
        }
    }

    /// Whether it has collectors
    pub fn has_collectors(self) -> bool {
        self == Self::Pllgc || self == Self::Adaptive
    }
}

/// Where the maps of an FTL with log blocks are while power is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MapsArg {
    /// Written to flash by checkpoints and found again after power loss
    Flash,
    /// In non-volatile memory that is assumed
    Nonvolatile,
}

/// State before the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Precondition {
    /// A new, empty device
    None,
    /// Every visible page written once, in order
    Fill,
    /// Filled, then overwritten until write-amplification is steady
    #[default]
    Steady,
    /// As long uniform random writing leaves a device, written at once, then overwritten until
    /// write-amplification is steady: for devices of terabytes
    Aged,
}

/// Options of `openftl list`.
#[derive(Args)]
pub struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    pub what: Listing,
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
    /// Print one device as TOML, to copy and change
    #[arg(long, value_name = "PROFILE", conflicts_with = "json")]
    pub toml: Option<String>,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    /// Flash translation layers
    Ftls,
    /// Synthetic workloads and their options
    Workloads,
    /// Trace formats
    Traces,
    /// Traces that come with the program
    Samples,
    /// Device profiles
    Devices,
    /// Victim policies
    Victims,
    /// Placement policies
    Placements,
    /// Page-validity stores
    Stores,
}

const BENCH_EXAMPLES: &str = "\
Examples:
  openftl bench
  openftl bench --case page-8g,dftl-8g --json
  openftl bench --sizes 1GiB,4GiB,16GiB
  openftl bench --sizes 1GiB,64GiB --ftl gecko,nftl";

/// Options of `openftl bench`.
#[derive(Args)]
#[command(after_help = BENCH_EXAMPLES)]
pub struct BenchArgs {
    /// Only these cases, separated by commas, as the table names them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub case: Vec<String>,
    /// Instead of the cases, every FTL on a device of each of these sizes: whether a write takes
    /// longer the larger the device is
    #[arg(long, value_name = "SIZES", value_delimiter = ',', conflicts_with_all = ["case", "quick"])]
    pub sizes: Vec<Size>,
    /// With --sizes, only these FTLs, separated by commas (openftl list ftls)
    #[arg(long, short, value_name = "NAMES", value_delimiter = ',', requires = "sizes")]
    pub ftl: Vec<String>,
    /// With --sizes, how many page writes are measured
    #[arg(long, value_name = "N", default_value = "200k", requires = "sizes")]
    pub writes: Count,
    /// Small devices and short runs: tells whether it works, not how fast it is
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
