//! `openftl inspect` and `openftl check`: what is on a disk in a file, and whether it is sound.
//!
//! Both leave the file as it is: the mount that they run writes into memory over it.

use crate::args::{CheckArgs, InspectArgs};
use crate::banked;
use crate::image::{self, Disk, Image, Mounted, Opened};
use crate::output;
use crate::report::table::{Align, Table};
use crate::units::{bytes, count};
use anyhow::{Context, Result, bail};
use ftl::{FtlError, MountReport, MountStep, OpCounts, Purpose, Setting};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use lftl::{Engine, LftlError};
use nand::file::{FILE_VERSION, JOINT_VERSION, Numbering, SEVERAL_VERSION, Usage};
use nand::{Access, BlockId, Lpn, Nand, ProgramOrder};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// So many pages that cannot be read are named; the others are counted.
const NAMED_MAX: usize = 20;

/// Everything that is known of a disk before it is mounted.
struct Before {
    description: Value,
    bad: Vec<u32>,
    usage: Usage,
    of_file: Option<OfFile>,
}

/// What only a file keeps.
struct OfFile {
    wear: Wear,
    closed: bool,
    undone: u64,
}

/// Erase counts of the blocks.
struct Wear {
    min: u32,
    mean: f64,
    max: u32,
}

/// Describes a disk.
pub fn inspect(args: &InspectArgs) -> Result<()> {
    let mut image = image::open(&args.image, Access::Overlay)?;
    let before = before(&mut image).with_context(|| format!("cannot read {}", args.image.display()))?;
    let pages = image.pages();
    let (mount, live) = match image.mount() {
        Ok((mut disk, report)) => (Ok(report), if args.quick { None } else { Some(read_all(&mut disk, pages)?) }),
        Err(error) => (Err(crate::error::text(&error)), None),
    };
    output::print(&if args.json {
        in_json(&args.image, &before, &mount, live.as_ref())?
    } else {
        in_text(&args.image, &before, &mount, live.as_ref())
    })
}

/// Checks a disk; an error if anything is wrong with it.
pub fn check(args: &CheckArgs) -> Result<()> {
    let image = image::open(&args.image, Access::Overlay)?;
    if matches!(&image, Opened::Table(image) if !image.mountable) {
        bail!("{} is flash: a check mounts the disk, which may write, and is done on files only", args.image.display());
    }
    let name = image.ftl();
    let (wrong, read) = findings(image)?;
    let text = if args.json {
        let object = json!({
            "image": args.image.display().to_string(),
            "ftl": name,
            "sound": wrong.is_empty(),
            "wrong": wrong,
            "pages": { "read": read.pages, "mapped": read.mapped, "unreadable": read.unreadable },
        });
        pretty(&object)?
    } else {
        let mut text: String = wrong.iter().map(|line| format!("{line}\n")).collect();
        let _ = writeln!(
            text,
            "{}: {} pages read, {} of them mapped, {} unreadable",
            args.image.display(),
            count(read.pages),
            count(read.mapped),
            count(read.unreadable)
        );
        text
    };
    output::print(&text)?;
    match wrong.len() {
        0 => Ok(()),
        1 => bail!("{} is not sound: one thing is wrong with it", args.image.display()),
        n => bail!("{} is not sound: {n} things are wrong with it", args.image.display()),
    }
}

/// What is wrong with a disk, and what reading all of it showed.
fn findings(image: Opened) -> Result<(Vec<String>, Read)> {
    let (name, pages) = (image.ftl(), image.pages());
    let (mut disk, report) = match image.mount() {
        Ok(mounted) => mounted,
        Err(error) => return Ok((vec![crate::error::text(&error)], Read::default())),
    };
    let mut wrong = Vec::new();
    if let Mounted::Table(disks) = &mut disk {
        let shards = disks.len();
        for (shard, disk) in disks.iter_mut().enumerate() {
            let where_ = in_shard(shards, shard);
            wrong.extend(disk.check().err().map(|violation| format!("{where_}{name}: {violation}")));
        }
    }
    wrong.extend(report.read_only.map(|shortage| shortage.to_string()));
    let read = read_all(&mut disk, pages)?;
    wrong.extend(read.named.iter().cloned());
    let more = read.unreadable - read.named.len() as u64;
    if more > 0 {
        wrong.push(format!("{} more pages cannot be read", count(more)));
    }
    Ok((wrong, read))
}

/// What a message about one of several shards begins with.
fn in_shard(shards: usize, shard: usize) -> String {
    if shards == 1 { String::new() } else { format!("shard {shard}: ") }
}

fn before(image: &mut Opened) -> Result<Before> {
    let description = description(image)?;
    let mut usage = Usage::default();
    let (mut bad, mut files) = (Vec::new(), Vec::new());
    let nands = image.nands();
    let devices = nands.len() as u32;
    let mut blocks = 0;
    for (device, nand) in (0..).zip(nands) {
        let found = nand.usage()?.unwrap_or_default();
        usage.host_data += found.host_data;
        usage.metadata += found.metadata;
        usage.damaged += found.damaged;
        usage.erased += found.erased;
        blocks = nand.geometry().blocks();
        let of_device = (0..blocks).filter(|block| nand.is_bad(BlockId(*block)));
        bad.extend(of_device.map(|block| device * blocks + block));
        files.extend(nand.file());
    }
    let of_file = (!files.is_empty()).then(|| {
        let counts = || files.iter().flat_map(|file| file.erase_counts());
        OfFile {
            wear: Wear {
                min: counts().min().unwrap_or(0),
                mean: counts().map(f64::from).sum::<f64>() / f64::from(blocks * devices),
                max: counts().max().unwrap_or(0),
            },
            closed: files.iter().all(|file| file.opening().closed),
            undone: files.iter().map(|file| file.opening().undone).sum(),
        }
    });
    Ok(Before { description, bad, usage, of_file })
}

/// The device and the disk, as JSON.
fn description(image: &mut Opened) -> Result<Value> {
    let pages = image.pages();
    let nands = image.nands();
    let devices = nands.len() as u32;
    let first = nands.first().context("there is no device")?;
    let (geometry, capabilities) = (*first.geometry(), first.capabilities());
    let version = first.file().map(|file| match (file.numbering(), devices) {
        (Numbering::Joint, _) => JOINT_VERSION,
        (Numbering::Own, 1) => FILE_VERSION,
        (Numbering::Own, _) => SEVERAL_VERSION,
    });
    let d = geometry.dimensions();
    let mut disk = match image {
        Opened::Table(image) => json!({
            "ftl": image.entry.info.name,
            "promise": image.entry.info.promise(),
            "shards": devices,
            "settings": settings(image),
        }),
        Opened::Banked(_) => json!({
            "ftl": banked::NAME,
            "promise": banked::PROMISE,
            "shards": 1,
            "banks": devices,
            "settings": {},
        }),
    };
    disk["logical_pages"] = json!(pages);
    disk["bytes"] = json!(pages * u64::from(d.page_bytes));
    let profile = match image {
        Opened::Table(image) => &image.record.device,
        Opened::Banked(image) => &image.record.device,
    };
    Ok(json!({
        "format_version": version,
        "device": {
            "profile": profile,
            "raw_bytes": geometry.raw_bytes() * u64::from(devices),
            "channels": d.channels,
            "dies_per_channel": d.dies_per_channel,
            "planes_per_die": d.planes_per_die,
            "blocks": d.blocks * devices,
            "pages_per_block": d.pages_per_block,
            "page_bytes": d.page_bytes,
            "spare_bytes": d.spare_bytes,
            "program_order": match capabilities.program_order {
                ProgramOrder::Sequential => "sequential",
                ProgramOrder::Free => "free",
            },
            "spare_reprograms": capabilities.spare_reprograms,
        },
        "disk": disk,
    }))
}

/// The settings that the FTL honours, by their names.
fn settings(image: &Image) -> Value {
    let (info, c) = (image.entry.info, &image.config);
    let gecko = c.gecko.over(info.preset.gecko);
    let mut all = Map::new();
    for setting in Setting::ALL.into_iter().filter(|&setting| info.honours_over(setting, c.validity)) {
        let value = match setting {
            Setting::CacheEntries => json!(c.cache_entries),
            Setting::SegmentedLru => json!(c.protected_percent),
            Setting::CacheWays => json!(c.cache_ways),
            Setting::Victim => json!(c.victim),
            Setting::Placement => json!(c.placement),
            Setting::AgeGroups => json!(c.age_groups),
            Setting::Lanes => json!(c.lanes),
            Setting::Validity => json!(c.validity.or(info.validity)),
            Setting::Gecko => json!({
                "t": gecko.size_ratio,
                "s": gecko.partitions,
                "two_way": !gecko.multi_way,
                "buffer": gecko.buffer_pages,
                "packed": gecko.packed,
                "filter_bytes": gecko.filter_bytes,
                "spread_ops": gecko.spread_ops,
            }),
            Setting::JanusUtilisation => json!(c.janus.utilisation_percent),
            Setting::JanusDefuse => json!(c.janus.defuse_among),
            Setting::JanusLearn => json!(c.janus.learn_utilisation),
            Setting::JanusBlockMap => json!(c.janus.page_map_percent),
            Setting::Groups => json!(c.groups.map(|groups| format!("{}:{}", groups.blocks, groups.extra))),
            Setting::Wear => json!(c.wear.map(|wear| json!({"spread": wear.spread, "scans": wear.scans}))),
            Setting::Warm => json!(c.warm),
            // A disk in a file has its maps in flash and no battery.
            Setting::Maps | Setting::Battery => continue,
        };
        all.insert(setting.name().to_owned(), value);
    }
    Value::Object(all)
}

/// What reading every logical page showed.
#[derive(Default)]
struct Read {
    pages: u64,
    /// Pages that are somewhere on flash; the others read as zeros.
    mapped: u64,
    unreadable: u64,
    /// The first of them, in words.
    named: Vec<String>,
}

/// Reads every one of the disk's `pages`. A page is mapped if reading it reads flash for the host.
fn read_all(disk: &mut Mounted, pages: u64) -> Result<Read> {
    let mut read = Read { pages, ..Read::default() };
    let bar = progress(pages);
    match disk {
        Mounted::Table(disks) => {
            let shards = disks.len();
            for (shard, disk) in disks.iter_mut().enumerate() {
                read_shard(disk, (pages / shards as u64) as u32, &in_shard(shards, shard), &mut read, &bar)?;
            }
        }
        Mounted::Banked(engine) => read_banked(engine, pages as u32, &mut read, &bar)?,
    }
    Ok(read)
}

fn read_banked(engine: &Engine, pages: u32, read: &mut Read, bar: &ProgressBar) -> Result<()> {
    let mut data = vec![0; engine.page_bytes()];
    for lpn in (0..pages).map(Lpn) {
        if lpn.0 % 4096 == 4095 {
            bar.inc(4096);
        }
        read.mapped += u64::from(engine.holds_data(lpn));
        match engine.read(lpn, 0, &mut data) {
            Ok(()) => {}
            Err(error @ LftlError::Lost { .. }) => read.lost(|| format!("{lpn} cannot be read: {error}")),
            Err(error) => return Err(error).with_context(|| format!("cannot read {lpn}")),
        }
    }
    Ok(())
}

impl Read {
    /// Counts a page that cannot be read, and names it if few were named.
    fn lost(&mut self, named: impl FnOnce() -> String) {
        self.unreadable += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(named());
        }
    }
}

fn read_shard(disk: &mut Disk, pages: u32, where_: &str, read: &mut Read, bar: &ProgressBar) -> Result<()> {
    let mut data = vec![0; disk.flash().nand().geometry().page_bytes() as usize];
    for lpn in (0..pages).map(Lpn) {
        if lpn.0 % 4096 == 4095 {
            bar.inc(4096);
        }
        let reads = |disk: &Disk| disk.flash().counts().of(Purpose::Host).reads;
        let before = reads(disk);
        let outcome = disk.read(lpn, &mut data);
        read.mapped += u64::from(reads(disk) > before || outcome.is_err());
        if let Err(error) = outcome {
            if let FtlError::Nand(nand::NandError::Host { .. }) = error {
                return Err(error).with_context(|| format!("cannot read {where_}{lpn}"));
            }
            read.lost(|| format!("{where_}{lpn} cannot be read: {error}"));
        }
    }
    Ok(())
}

/// A bar on standard error if that is a terminal; nothing otherwise.
fn progress(pages: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(pages), ProgressDrawTarget::stderr());
    // The template is a constant; were it malformed, the bar would keep its default.
    if let Ok(style) = ProgressStyle::with_template(" reading  [{bar:36}] {percent:>3}%  {elapsed}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_finish(ProgressFinish::AndClear)
}

fn pretty(object: &Value) -> Result<String> {
    let mut text = serde_json::to_string_pretty(object).context("the result cannot be written as JSON")?;
    text.push('\n');
    Ok(text)
}

fn ops(o: &OpCounts) -> Value {
    json!({
        "reads": o.reads,
        "spare_reads": o.spare_reads,
        "programs": o.programs,
        "erases": o.erases,
        "flag_programs": o.flag_programs,
    })
}

fn in_json(path: &Path, before: &Before, mount: &Result<MountReport, String>, live: Option<&Read>) -> Result<String> {
    let mut object = before.description.clone();
    object["image"] = json!(path.display().to_string());
    let file = before.of_file.as_ref();
    object["closed"] = json!(file.map(|file| file.closed));
    object["operations_undone"] = json!(file.map(|file| file.undone));
    object["wear"] =
        json!(file.map(|OfFile { wear, .. }| json!({"min": wear.min, "mean": wear.mean, "max": wear.max})));
    object["bad_blocks"] = json!(before.bad);
    let usage = before.usage;
    object["pages"] = json!({
        "host_data": usage.host_data,
        "metadata": usage.metadata,
        "damaged": usage.damaged,
        "erased": usage.erased,
        "live": live.map(|read| read.mapped),
        "unreadable": live.map(|read| read.unreadable),
    });
    object["mount"] = match mount {
        Err(error) => json!({ "error": error }),
        Ok(report) => json!({
            "steps": report.steps.iter().map(|step| json!({"name": step.name, "flash": ops(&step.ops)})).collect::<Vec<_>>(),
            "unreadable_pages": report.unreadable_pages,
            "rebuilt_entries": report.rebuilt_entries,
            "read_only": report.read_only.map(|shortage| shortage.to_string()),
        }),
    };
    pretty(&object)
}

fn in_text(path: &Path, before: &Before, mount: &Result<MountReport, String>, live: Option<&Read>) -> String {
    let (device, disk) = (&before.description["device"], &before.description["disk"]);
    let number = |value: &Value| count(value.as_u64().unwrap_or(0));
    let size = |value: &Value| bytes(value.as_u64().unwrap_or(0));
    let mut table = Table::new(&[("what", Align::Left), (&path.display().to_string(), Align::Left)]);
    let mut row = |what: &str, text: String| table.row(vec![what.to_owned(), text]);
    row(
        "device",
        format!(
            "{}, {} raw: {} blocks of {} pages of {}, {} program order",
            word(&device["profile"]),
            size(&device["raw_bytes"]),
            number(&device["blocks"]),
            number(&device["pages_per_block"]),
            size(&device["page_bytes"]),
            word(&device["program_order"]),
        ),
    );
    let over = match (disk["shards"].as_u64(), disk["banks"].as_u64()) {
        (Some(shards), _) if shards > 1 => format!(", striped over {} shards", count(shards)),
        (_, Some(banks)) => format!(", over {} banks", count(banks)),
        _ => String::new(),
    };
    row("disk", format!("{}, {} pages{over}", size(&disk["bytes"]), number(&disk["logical_pages"])));
    row("FTL", format!("{}: {}", word(&disk["ftl"]), word(&disk["promise"])));
    let settings = disk["settings"].as_object().into_iter().flatten();
    let settings: Vec<String> = settings.map(|(name, value)| format!("{name} {}", word(value))).collect();
    if !settings.is_empty() {
        row("settings", settings.join(", "));
    }
    if let Some(OfFile { wear, closed, undone }) = &before.of_file {
        let text = match (closed, undone) {
            (true, _) => "properly".to_owned(),
            (false, 0) => "not: its process or host died".to_owned(),
            (false, n) => {
                format!("not: its host died, and {} operations do not count that reached the disk early", count(*n))
            }
        };
        row("last closed", text);
        let counts = format!("min {}, mean {:.1}, max {}", count(wear.min.into()), wear.mean, count(wear.max.into()));
        row("erase counts", counts);
    }
    row("bad blocks", bad_in_text(&before.bad));
    let usage = before.usage;
    row(
        "pages",
        format!(
            "{} of host data, {} of metadata, {} damaged, {} erased",
            count(usage.host_data),
            count(usage.metadata),
            count(usage.damaged),
            count(usage.erased)
        ),
    );
    if let Some(read) = live {
        row(
            "live pages",
            format!("{} of host data, {} of them unreadable", count(read.mapped), count(read.unreadable)),
        );
    }
    let mut text = table.render();
    text.push('\n');
    text.push_str(&match mount {
        Ok(report) => mount_in_text(report),
        Err(error) => format!("A mount fails: {error}\n"),
    });
    text
}

/// How many blocks are bad, and the first of them.
fn bad_in_text(bad: &[u32]) -> String {
    let named: Vec<String> = bad.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let more = if bad.len() > NAMED_MAX { ", …" } else { "" };
    match named.is_empty() {
        true => "none".to_owned(),
        false => format!("{}: {}{more}", count(bad.len() as u64), named.join(", ")),
    }
}

/// A setting as words.
fn word(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(parts) => {
            let parts: Vec<String> = parts.iter().map(|(name, value)| format!("{name} {}", word(value))).collect();
            format!("({})", parts.join(", "))
        }
        other => other.to_string(),
    }
}

fn mount_in_text(report: &MountReport) -> String {
    let columns = ["reads", "spare reads", "programs", "erases"].map(|name| (name, Align::Right));
    let header: Vec<(&str, Align)> = [("a mount would", Align::Left)].into_iter().chain(columns).collect();
    let mut table = Table::new(&header);
    let total = report.steps.iter().fold(OpCounts::default(), |all, step| image::sum(all, step.ops));
    for step in report.steps.iter().copied().chain([MountStep { name: "in all", ops: total }]) {
        let o = step.ops;
        let numbers = [o.reads, o.spare_reads, o.programs, o.erases].map(count);
        table.row([step.name.to_owned()].into_iter().chain(numbers).collect());
    }
    let mut text = table.render();
    let _ = writeln!(
        text,
        "It would find {} unreadable pages and rebuild {} entries of the map.",
        count(report.unreadable_pages),
        count(report.rebuilt_entries)
    );
    if let Some(shortage) = report.read_only {
        let _ = writeln!(text, "{shortage}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use nand::{FileNand, Ppn};
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;

    /// A small disk in a folder that vanishes with the value.
    fn formatted(ftl: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.nand");
        let words = ["openftl", "format", path.to_str().unwrap(), "--ftl", ftl, "--capacity", "32MiB"];
        let Command::Format(args) = Cli::try_parse_from(words).unwrap().command else { panic!("no format") };
        crate::format::run(&args).unwrap();
        (folder, path)
    }

    fn open(path: &Path, access: Access) -> Opened {
        image::open(path, access).unwrap()
    }

    /// Writes pages, each of them filled with a byte of its own, and dies without a word.
    fn write_and_die(path: &Path, pages: std::ops::Range<u32>) {
        let (Mounted::Table(mut disks), _) = open(path, Access::ReadWrite).mount().unwrap() else { panic!("banks") };
        let mut disk = disks.remove(0);
        for lpn in pages {
            disk.write(Lpn(lpn), &[lpn as u8 | 1; 4096]).unwrap();
        }
        disk.flush().unwrap();
        // Dropping it would close the file properly.
        let nand = disk.into_flash().into_nand();
        let bytes = std::fs::read(path).unwrap();
        drop(nand);
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn a_disk_whose_process_died_is_described_and_sound() {
        for ftl in ["gecko", "page", "fast", "janus"] {
            let (_folder, path) = formatted(ftl);
            write_and_die(&path, 0..300);
            write_and_die(&path, 100..200);
            let bytes = std::fs::read(&path).unwrap();
            let mut image = open(&path, Access::Overlay);
            let before = before(&mut image).unwrap();
            let file = before.of_file.unwrap();
            assert!(!file.closed && file.undone == 0 && before.usage.host_data >= 300, "{ftl}: {:?}", before.usage);
            let (wrong, read) = findings(image).unwrap();
            assert_eq!(wrong, Vec::<String>::new(), "{ftl}");
            assert_eq!((read.mapped, read.unreadable), (300, 0), "{ftl}");
            assert!(bytes == std::fs::read(&path).unwrap(), "{ftl}: the file was touched");
        }
    }

    #[test]
    fn a_damaged_page_is_found_and_named() {
        let (_folder, path) = formatted("gecko");
        write_and_die(&path, 0..300);
        // Of two pages of host data, neither of which is the last of its block. Neighbours hold the
        // same bytes.
        let mut nand = FileNand::open(&path, Access::ReadOnly).unwrap();
        let pages = (0..nand.geometry().pages()).map(Ppn);
        let data: Vec<u8> = pages
            .filter_map(|ppn| {
                let mut data = vec![0; 4096];
                nand.read(ppn, &mut data).ok().map(|_| data[0])
            })
            .step_by(2)
            .take(2)
            .collect();
        drop(nand);
        let bytes = std::fs::read(&path).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for byte in &data {
            let at = bytes.chunks_exact(4096).position(|page| page.iter().all(|b| b == byte)).unwrap();
            file.write_all_at(&[0xAA], at as u64 * 4096 + 9).unwrap();
        }
        let (wrong, read) = findings(open(&path, Access::Overlay)).unwrap();
        assert_eq!((wrong.len(), read.mapped, read.unreadable), (2, 300, 2), "{wrong:?}");
        assert!(wrong.iter().all(|line| line.contains("cannot be read: ")), "{wrong:?}");
    }
}
