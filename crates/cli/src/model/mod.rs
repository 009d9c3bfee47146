//! `openftl model`: the formulas of GeckoFTL's paper for any device, or those of separate logs
//! ([`logs`]).

mod logs;

use crate::args::ModelArgs;
use crate::error::usage;
use crate::output;
use crate::report::table::{Align, Table};
use crate::units::{bytes, count, duration_us, trimmed};
use anyhow::{Context, Result};
use papers::geckoftl::model::{CACHE_ENTRY_BYTES, Device, MODELS, Model, Step, Times, scans, structures};
use serde_json::{Value, json};

/// Prints the formulas' values.
pub fn run(args: &ModelArgs) -> Result<()> {
    if !args.logs.rates.is_empty() {
        return logs::run(&args.logs, args.json);
    }
    let (device, times) = (device(args)?, times(args)?);
    let models = models(args)?;
    check_dirty_ratio(args, &device, &models)?;
    if args.json {
        let mut text = serde_json::to_string_pretty(&as_json(&device, &times, &models)).context("not JSON")?;
        text.push('\n');
        return output::print(&text);
    }
    output::print(&as_text(&device, &times, &models))
}

fn device(args: &ModelArgs) -> Result<Device> {
    let (pages, page_bytes) = (args.pages_per_block.0, args.page_size.0);
    let dirty_ratio = args.dirty_ratio.unwrap_or(Device::PAPER.dirty_ratio);
    for (option, ratio) in [("--logical-ratio", args.logical_ratio), ("--dirty-ratio", dirty_ratio)] {
        if !(ratio > 0.0 && ratio < 1.0) {
            return Err(usage(format!("{option} {ratio} is not between 0 and 1")));
        }
    }
    if args.s > pages {
        return Err(usage(format!("--gecko-s {} is more than the {pages} pages of a block", args.s)));
    }
    let cache_entries = args.cache.0 / CACHE_ENTRY_BYTES;
    if cache_entries == 0 {
        return Err(usage(format!("--cache {} B holds no entry; an entry is {CACHE_ENTRY_BYTES} B", args.cache.0)));
    }
    let block_bytes = pages
        .checked_mul(page_bytes)
        .ok_or_else(|| usage(format!("{pages} pages of {page_bytes} B are no block that could be")))?;
    let capacity = args.capacity.map_or(Device::PAPER.raw_bytes() as u64, |size| size.0);
    let blocks = args.blocks.map_or(capacity / block_bytes, |count| count.0);
    if blocks == 0 {
        return Err(usage(format!("a capacity of {} holds no block of {}", bytes(capacity), bytes(block_bytes))));
    }
    Ok(Device {
        blocks,
        pages_per_block: pages,
        page_bytes,
        logical_ratio: args.logical_ratio,
        cache_entries,
        partitions: if args.s == 0 { Device::best_partitions(pages) } else { args.s },
        size_ratio: args.t,
        dirty_ratio,
    })
}

fn times(args: &ModelArgs) -> Result<Times> {
    let all = [("--read-us", args.read_us), ("--spare-read-us", args.spare_read_us), ("--write-us", args.write_us)];
    match all.into_iter().find(|(_, us)| !(*us > 0.0 && us.is_finite())) {
        Some((option, us)) => Err(usage(format!("{option} {us} is not a time of more than 0 microseconds"))),
        None => Ok(Times { read_us: args.read_us, spare_read_us: args.spare_read_us, write_us: args.write_us }),
    }
}

fn models(args: &ModelArgs) -> Result<Vec<&'static Model>> {
    if args.ftl.is_empty() {
        return Ok(MODELS.iter().collect());
    }
    let find = |name: &String| {
        Model::find(name).ok_or_else(|| {
            let known: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
            usage(format!("the paper has no formulas for `{name}`; it has them for {}", known.join(", ")))
        })
    };
    args.ftl.iter().map(find).collect()
}

/// Refuses a share of dirty entries if no recovery depends on it.
fn check_dirty_ratio(args: &ModelArgs, device: &Device, models: &[&Model]) -> Result<()> {
    if args.dirty_ratio.is_none() || models.iter().any(|model| model.caps_dirty_entries(device)) {
        return Ok(());
    }
    let names = |list: &[&Model]| list.iter().map(|model| model.name).collect::<Vec<_>>().join(", ");
    let all: Vec<&Model> = MODELS.iter().collect();
    let honour: Vec<&Model> = all.iter().filter(|model| model.caps_dirty_entries(device)).copied().collect();
    Err(usage(format!(
        "--dirty-ratio means nothing to {}; it is honoured by {}; choose one of those, or leave --dirty-ratio out",
        names(models),
        names(&honour)
    )))
}

fn as_text(d: &Device, times: &Times, models: &[&Model]) -> String {
    let size = |n: f64| bytes(n as u64);
    let time = |step: &Step| duration_us(step.seconds(times) * 1e6);
    let mut out = format!(
        "{} raw: K = {} blocks of B = {} pages of P = {}; R = {}; C = {} cached entries\n\
         Logarithmic Gecko: T = {}, S = {}, V = {} entries on a page, L = {} levels\n\
         write-amplification by page validity: at most {} with it, {} with a bitmap in flash\n\n",
        size(d.raw_bytes()),
        count(d.blocks),
        d.pages_per_block,
        bytes(d.page_bytes),
        trimmed(d.logical_ratio),
        count(d.cache_entries),
        d.size_ratio,
        d.partitions,
        trimmed(d.gecko_entries_per_page()),
        d.gecko_levels(),
        trimmed(d.gecko_write_amplification(times.delta())),
        trimmed(d.flash_pvb_write_amplification(times.delta())),
    );
    let mut table = Table::new(&[("structure", Align::Left), ("size", Align::Right), ("formula", Align::Left)]);
    for sized in structures(d) {
        table.row(vec![sized.name.to_owned(), size(sized.bytes), sized.formula.to_owned()]);
    }
    out.push_str(&table.render());
    let mut table = Table::new(&[("scan", Align::Left), ("time", Align::Right)]);
    for (name, step) in scans(d) {
        table.row(vec![name.to_owned(), time(&step)]);
    }
    out.push('\n');
    out.push_str(&table.render());
    out.push_str("\nRAM by structure\n");
    let mut table = Table::new(&[("ftl", Align::Left), ("RAM", Align::Right), ("structures", Align::Left)]);
    for model in models {
        let parts = (model.ram)(d);
        let parts: Vec<String> = parts.iter().map(|part| format!("{} {}", part.name, size(part.bytes))).collect();
        table.row(vec![model.name.to_owned(), size(model.ram_bytes(d)), parts.join(", ")]);
    }
    out.push_str(&table.render());
    out.push_str("\nRecovery, flash operations one after the other\n");
    out.push_str(&recovery(d, times, models));
    out
}

fn recovery(d: &Device, times: &Times, models: &[&Model]) -> String {
    let mut table = Table::new(&[
        ("ftl", Align::Left),
        ("step", Align::Left),
        ("reads", Align::Right),
        ("spare reads", Align::Right),
        ("programs", Align::Right),
        ("time", Align::Right),
    ]);
    for model in models {
        for step in (model.recovery)(d) {
            let time = duration_us(step.seconds(times) * 1e6);
            let ops = [step.reads, step.spare_reads, step.programs].map(|ops| count(ops.round() as u64));
            let mut row = vec![model.name.to_owned(), step.name.to_owned()];
            row.extend(ops);
            row.push(time);
            table.row(row);
        }
        let total = duration_us(model.recovery_seconds(d, times) * 1e6);
        let mut row = vec![model.name.to_owned(), "total".to_owned()];
        row.extend(["", "", ""].map(str::to_owned));
        row.push(total);
        table.row(row);
    }
    table.render()
}

fn as_json(d: &Device, times: &Times, models: &[&Model]) -> Value {
    let structures: Vec<Value> = structures(d)
        .iter()
        .map(|sized| json!({"name": sized.name, "formula": sized.formula, "bytes": sized.bytes}))
        .collect();
    let step = |step: &Step| {
        json!({
            "name": step.name,
            "reads": step.reads,
            "spare_reads": step.spare_reads,
            "programs": step.programs,
            "seconds": step.seconds(times),
        })
    };
    let scans: Vec<Value> =
        scans(d).iter().map(|(name, scan)| json!({"name": name, "seconds": scan.seconds(times)})).collect();
    let ftls: Vec<Value> = models
        .iter()
        .map(|model| {
            json!({
                "name": model.name,
                "ram": (model.ram)(d),
                "ram_bytes": model.ram_bytes(d),
                "recovery": (model.recovery)(d).iter().map(step).collect::<Vec<_>>(),
                "recovery_seconds": model.recovery_seconds(d, times),
            })
        })
        .collect();
    json!({
        "openftl": env!("CARGO_PKG_VERSION"),
        "device": d,
        "times": times,
        "translation_pages": d.translation_pages(),
        "gecko": {
            "entries_per_page": d.gecko_entries_per_page(),
            "levels": d.gecko_levels(),
            "write_amplification": d.gecko_write_amplification(times.delta()),
            "flash_pvb_write_amplification": d.flash_pvb_write_amplification(times.delta()),
        },
        "structures": structures,
        "scans": scans,
        "ftls": ftls,
    })
}
