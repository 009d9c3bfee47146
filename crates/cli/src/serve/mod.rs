//! `openftl serve`: a disk for others, over NBD or as a device of the kernel.

mod front;
mod record;
mod watch;

use crate::args::ServeArgs;
use crate::backing::Backing;
use crate::error::usage;
use crate::units::{bytes, count};
use crate::{banked, device, format, image, output, settings};
use anyhow::{Context, Result};
use blockdev::nbd::{Address, Listener, Observer, Stop, metrics};
use blockdev::{BankedDisk, BankedOptions, BlockDevice, Disk, DiskError, DiskOptions, Keeping, Log, Severity, Store};
use front::{Front, Place};
use ftl::Shortage;
use ftl::ftls::Info;
use nand::file::Syncer;
use nand::{Access, MemNand};
use record::Recorder;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use table::AnyBytes;
use watch::Watch;

/// Exit code of a program that a second signal ends.
const ENDED_BY_SIGNAL: i32 = 130;

/// Serves until a signal comes.
pub fn run(args: &ServeArgs) -> Result<()> {
    for (option, address) in [("--nbd", &args.nbd), ("--metrics", &args.metrics)] {
        if let Some(address) = address {
            check_address(option, address, args.allow_remote)?;
        }
    }
    let log: Arc<dyn Log> = Arc::new(Lines);
    let opened = match &args.image {
        Some(path) => in_file(path, args, &log)?,
        None if args.disk.ftl.as_deref() == Some(banked::NAME) => {
            opened_banked(banked::in_memory(args, &log)?, IN_MEMORY)
        }
        None => in_memory(args, &log)?,
    };
    let stop = Arc::new(Stop::new().context("cannot make a pair of sockets")?);
    // Before anybody can connect: a signal from here on is a clean stop.
    let signals = Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?;
    let recorder = args.record.as_deref().map(|path| Recorder::create(path, &args.name)).transpose()?;
    let metrics = args.metrics.as_ref().map(|address| bind("--metrics", address)).transpose()?;
    stop_on(signals, &stop)?;
    let observer = recorder.clone().map(|recorder| Box::new(recorder) as Box<dyn Observer>);
    let front = Front::open(args, &opened, observer, Arc::clone(&log))?;
    announce(args, &opened, &front.place(), metrics.as_ref().map(Listener::address))?;
    let (disk, stats): (&dyn BlockDevice, _) = (opened.disk.device(), front.stats());
    let watch = Watch::new(disk, Arc::clone(&stats), args.json)?;
    let served = thread::scope(|scope| {
        if let Some(metrics) = &metrics {
            scope.spawn(|| metrics::run(disk, &stats, metrics, &stop, log.as_ref()));
        }
        if let Some(seconds) = args.stats {
            let (watch, stop) = (&watch, &stop);
            scope.spawn(move || watch.run(seconds, stop));
        }
        let served = front.run(&stop);
        stop.stop();
        served
    });
    // The disk is saved whatever became of the clients.
    let closed = opened.disk.close();
    let recorded = recorder.map_or(Ok(()), |recorder| recorder.finish());
    watch.total()?;
    closed.context("the disk could not be saved")?;
    served?;
    recorded
}

/// A disk over an FTL of the table, or over the engine of many threads.
enum Served {
    Table(Arc<Disk<AnyBytes>>),
    Banked(Arc<BankedDisk>),
}

impl Served {
    fn device(&self) -> &dyn BlockDevice {
        match self {
            Self::Table(disk) => disk.as_ref(),
            Self::Banked(disk) => disk.as_ref(),
        }
    }

    fn shared(&self) -> Arc<dyn BlockDevice> {
        match self {
            Self::Table(disk) => Arc::clone(disk) as Arc<dyn BlockDevice>,
            Self::Banked(disk) => Arc::clone(disk) as Arc<dyn BlockDevice>,
        }
    }

    fn close(&self) -> Result<(), DiskError> {
        match self {
            Self::Table(disk) => disk.close(),
            Self::Banked(disk) => disk.close(),
        }
    }
}

/// A disk that can be served.
struct Opened {
    disk: Served,
    description: String,
    /// What outlives what, in a sentence.
    promise: String,
}

fn in_file(path: &Path, args: &ServeArgs, log: &Arc<dyn Log>) -> Result<Opened> {
    let disk = &args.disk;
    let ours = [
        ("--shards", args.shards > 1),
        ("--delays", args.delays),
        ("--ftl", disk.ftl.is_some()),
        ("--device", disk.device.is_some()),
        ("--capacity", disk.capacity.is_some()),
        ("--logical-ratio", disk.logical_ratio.is_some()),
    ];
    let tuned = settings::given(&disk.tuning).map(|(option, _, given)| (option, given));
    if let Some((option, _)) = ours.iter().chain(&tuned).find(|(_, given)| *given) {
        return Err(usage(format!("{option} is for --memory: {} says what disk it is", path.display())));
    }
    let access = if args.read_only { Access::Overlay } else { Access::ReadWrite };
    let mut image = image::open(path, access)?;
    // Devices of one file are synced together.
    let syncer = image.nands().first().and_then(Backing::syncer);
    let store = syncer.map(|syncer| Box::new(Synced(syncer)) as Box<dyn Store>);
    let warn = |shortage: Option<Shortage>| {
        if let Some(shortage) = shortage {
            log.line(Severity::Warning, &format!("{}: {shortage}", path.display()));
        }
    };
    let promise = match (args.read_only, args.write_through) {
        (true, _) => "Nothing is written to the file.",
        (_, true) => "What was answered survives a killed server and a power cut.",
        _ => "What was flushed survives a killed server and a power cut.",
    };
    let image = match image {
        image::Opened::Table(image) => image,
        image::Opened::Banked(image) => {
            let (read_only, write_through) = (args.read_only, args.write_through);
            let options = BankedOptions { store, read_only, write_through, log: Arc::clone(log) };
            let served = banked::in_file(image, args, options, path)?;
            warn(served.shortage);
            return Ok(opened_banked(served, promise));
        }
    };
    let (info, shards) = (image.entry.info, image.shards());
    if let Some((option, _)) = banked::given(&args.banked).iter().find(|(_, given)| *given) {
        let path = path.display();
        return Err(usage(format!("{option} is for disks of {}; {path} holds one of {}", banked::NAME, info.name)));
    }
    let (ftls, mounted) = image.mount().with_context(|| format!("cannot serve {}", path.display()))?;
    warn(mounted.read_only);
    let options = DiskOptions {
        store,
        read_only: args.read_only,
        write_through: args.write_through,
        log: Arc::clone(log),
        ..DiskOptions::new(Keeping::PowerLoss)
    };
    opened(Disk::new(ftls, info, options), &info, shards, promise)
}

const IN_MEMORY: &str = "It is in memory: nothing of it outlives the server.";

fn opened_banked(served: banked::Served, promise: &str) -> Opened {
    let banked::Served { disk, description, .. } = served;
    Opened { disk: Served::Banked(Arc::new(disk)), description, promise: promise.to_owned() }
}

fn in_memory(args: &ServeArgs, log: &Arc<dyn Log>) -> Result<Opened> {
    if let Some((option, _)) = banked::given(&args.banked).iter().find(|(_, given)| *given) {
        return Err(usage(format!("{option} is for --ftl {}; leave it out, or choose that", banked::NAME)));
    }
    let planned = format::planned_shards(&args.disk, args.shards)?;
    let plan = &planned.plan;
    device::check_memory(plan.geometry.raw_bytes() * u64::from(args.shards))?;
    let ftls = (0..args.shards).map(|_| {
        let nand = Backing::from(MemNand::new(plan.geometry, plan.capabilities));
        let nand = if args.delays { nand.paced(plan.timing) } else { nand };
        format::on(nand, &planned.info, &planned.config)
    });
    let ftls = ftls.collect::<Result<Vec<_>>>()?;
    let options = DiskOptions { empty: true, log: Arc::clone(log), ..DiskOptions::new(Keeping::Nothing) };
    opened(Disk::new(ftls, planned.info, options), &planned.info, args.shards, IN_MEMORY)
}

fn opened(disk: Result<Disk<AnyBytes>, blockdev::Refusal>, info: &Info, shards: u32, promise: &str) -> Result<Opened> {
    let disk = Arc::new(disk.map_err(|refusal| usage(refusal.to_string()))?);
    let over = if shards == 1 { String::new() } else { format!(" over {shards} shards") };
    let description = format!("{} under {}{over}", bytes(disk.size_bytes()), info.name);
    Ok(Opened { disk: Served::Table(disk), description, promise: promise.to_owned() })
}

fn check_address(option: &str, address: &Address, allow_remote: bool) -> Result<()> {
    if address.is_remote() && !allow_remote {
        return Err(usage(format!(
            "{option} {address} can be reached from other machines, nothing is encrypted, and nobody is asked who he is; \
             use tcp:PORT or unix:PATH, or say --allow-remote"
        )));
    }
    Ok(())
}

fn bind(option: &str, address: &Address) -> Result<Listener> {
    Listener::bind(address).with_context(|| format!("cannot listen on {option} {address}"))
}

/// Stops the server at the first signal, and the program at the second.
fn stop_on(mut signals: Signals, stop: &Arc<Stop>) -> Result<()> {
    let stop = Arc::clone(stop);
    let wait = move || {
        let mut signals = signals.forever();
        if signals.next().is_some() {
            stop.stop();
        }
        if signals.next().is_some() {
            output::complain("stopped at once: what was not flushed may be lost");
            std::process::exit(ENDED_BY_SIGNAL);
        }
    };
    thread::Builder::new().name("signals".into()).spawn(wait).context("cannot start a thread for signals")?;
    Ok(())
}

fn announce(args: &ServeArgs, opened: &Opened, at: &Place, metrics: Option<&Address>) -> Result<()> {
    let size_bytes = opened.disk.device().size_bytes();
    if args.json {
        let object = json!({
            "serving": at.address,
            "uri": at.uri,
            "export": args.name,
            "bytes": size_bytes,
            "description": opened.description,
            "read_only": args.read_only,
            "metrics": metrics.map(ToString::to_string),
        });
        return output::print(&format!("{object}\n"));
    }
    let mut text =
        format!("Serving {} ({} B) at {}\n{}\n", opened.description, count(size_bytes), at.uri, opened.promise);
    if let Some(Address::Tcp(address)) = metrics {
        text.push_str(&format!("Metrics: http://{address}/metrics\n"));
    }
    text.push_str("Ctrl-C stops it.\n");
    output::print(&text)
}

/// Lines on standard error.
struct Lines;

impl Log for Lines {
    fn line(&self, severity: Severity, text: &str) {
        output::complain(&format!("{severity}: {text}"));
    }
}

/// The file of a disk.
struct Synced(Syncer);

impl Store for Synced {
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
}
