//! What can be asked of a served disk.

use super::{BufferPolicy, DiskArgs};
use blockdev::nbd::Address;
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, ValueHint};
use lftl::Policy;
use std::path::PathBuf;

const SERVE_EXAMPLES: &str = "\
Examples:
  openftl serve --memory --nbd unix:disk.sock
  openftl format disk.nand && openftl serve disk.nand --nbd unix:disk.sock
  openftl serve disk.nand --nbd tcp:10809 --stats 5 --metrics tcp:9100 --record requests.csv

Clients: fio --ioengine=nbd, nbdcopy, nbdfuse, qemu, nbd-client. docs/SERVING.md shows each.";

/// The number of a device of the kernel; `None` lets the kernel choose.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug)]
pub struct UblkId(pub Option<u32>);

#[cfg(target_os = "linux")]
impl std::str::FromStr for UblkId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = text.parse().ok().filter(|id| *id <= ublk::ID_MAX);
        match (text, id) {
            ("any", _) => Ok(Self(None)),
            (_, Some(_)) => Ok(Self(id)),
            _ => Err(format!("an ID is a number up to {}; an image stands before --ublk", ublk::ID_MAX)),
        }
    }
}

/// Options of `openftl serve`.
#[derive(Args)]
#[command(after_help = SERVE_EXAMPLES, group(ArgGroup::new("front").required(true)))]
pub struct ServeArgs {
    /// The file of the disk, or flash (/dev/mtdN), as openftl format made it
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath, required_unless_present = "memory",
        conflicts_with = "memory")]
    pub image: Option<PathBuf>,
    /// Where to listen: unix:PATH, tcp:PORT on this machine, or tcp:HOST:PORT
    #[arg(long, value_name = "ADDRESS", group = "front")]
    pub nbd: Option<Address>,
    /// Serve /dev/ublkbID, a block device of this machine; without an ID the kernel chooses one
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "any", group = "front",
        conflicts_with = "connections")]
    pub ublk: Option<UblkId>,
    /// Queues of /dev/ublkbID, each with a thread
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "N", default_value_t = 1, requires = "ublk",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(ublk::QUEUES_MAX)))]
    pub queues: u16,
    /// Serve a new disk in memory; nothing of it is kept
    #[arg(long)]
    pub memory: bool,
    /// Refuse writes
    #[arg(long, conflicts_with = "memory")]
    pub read_only: bool,
    /// Answer no write, trim or zeroing before it survives power loss: no write cache
    #[arg(long, conflicts_with_all = ["memory", "read_only"])]
    pub write_through: bool,
    /// Stripe the disk over N devices in memory, each with an FTL and a lock of its own
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=64))]
    pub shards: u32,
    /// Let each operation of a device in memory take as long as the device profile says
    #[arg(long)]
    pub delays: bool,
    /// Name of the export; a client that names none gets it too
    #[arg(long, value_name = "NAME", default_value = "disk")]
    pub name: String,
    /// Connections at once; more are refused
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub connections: u32,
    /// Listen to other machines too: nothing is encrypted, and nobody is asked who he is
    #[arg(long)]
    pub allow_remote: bool,
    /// Print what was done every so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub stats: Option<u32>,
    /// Print one JSON object a line instead of text
    #[arg(long)]
    pub json: bool,
    /// Answer HTTP requests for /metrics there, in the text format of Prometheus
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<Address>,
    /// Write every request to this file, as a trace (CSV)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: Option<PathBuf>,
    /// What is served with --memory.
    #[command(flatten, next_help_heading = "A disk in memory")]
    pub disk: DiskArgs,
    /// The threads of LFTL.
    #[command(flatten)]
    pub banked: BankedArgs,
}

/// How LFTL works.
#[derive(Args)]
#[command(next_help_heading = "LFTL (--ftl lftl, or a file of such a disk)")]
pub struct BankedArgs {
    /// Threads that serve requests, each with a queue [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub workers: Option<u32>,
    /// Threads that collect garbage at most; none under npgc [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=256))]
    pub collectors: Option<u32>,
    /// Collect in the path of a write, beside the writers, or beside them with fewer collectors
    /// while writers are busy [default: adaptive]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Policy::TABLE.map(|row| row.0)))]
    pub policy: Option<String>,
    /// Write buffers, each of one page [default: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub buffers: Option<u32>,
    /// Which buffer is written out when one is needed [default: fifo]
    #[arg(long, value_enum, value_name = "NAME")]
    pub replacement: Option<BufferPolicy>,
}
