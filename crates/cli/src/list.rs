//! `openftl list`: the tables of the code as tables to read.

use crate::args::{ListArgs, Listing};
use crate::device;
use crate::error::usage;
use crate::output;
use crate::report::table::{Align, Table};
use crate::units::bytes;
use anyhow::{Context, Result};
use ftl::Setting;
use ftl::ftls::Info;
use nand::{ProgramOrder, profiles};
use serde_json::{Value, json};
use workload::Parameter;
use workload::trace::Unsaid;

/// Prints what was asked for.
pub fn run(args: &ListArgs) -> Result<()> {
    if let Some(name) = &args.toml {
        if args.what != Listing::Devices {
            return Err(usage("--toml prints a device: openftl list devices --toml demo"));
        }
        let profile = device::profile(name)?;
        return output::print(&toml::to_string_pretty(&profile).context("the profile cannot be written as TOML")?);
    }
    if args.json {
        let mut text =
            serde_json::to_string_pretty(&as_json(args.what)).context("the list cannot be written as JSON")?;
        text.push('\n');
        return output::print(&text);
    }
    output::print(&as_text(args.what))
}

fn as_text(what: Listing) -> String {
    match what {
        Listing::Ftls => promised(),
        Listing::Victims => sourced(victims()),
        Listing::Placements => sourced(placements()),
        Listing::Stores => stores(),
        Listing::Devices => devices(),
        Listing::Traces => traces(),
        Listing::Samples => sourced(samples()),
        Listing::Workloads => workloads(),
    }
}

/// Name, summary, source.
type Row = (&'static str, &'static str, &'static str);

/// The FTLs with what is there after power loss.
fn promised() -> String {
    let mut table = Table::new(&[
        ("name", Align::Left),
        ("what it is, what is there after power loss, what can be set", Align::Left),
    ]);
    for info in ftl::ftls::infos() {
        table.row(vec![info.name.to_owned(), info.summary.to_owned()]);
        table.row(vec![String::new(), info.promise().to_owned()]);
        table.row(vec![String::new(), format!("settings: {}", settings(info).join(", "))]);
        let preset = info.preset.words();
        if !preset.is_empty() {
            table.row(vec![String::new(), format!("by default: {}", preset.join(", "))]);
        }
        if info.program_order == ProgramOrder::Free {
            table.row(vec![String::new(), "needs a device with free program order".to_owned()]);
        }
        if info.flags > 0 {
            let times = format!("needs a device that sets flags of a programmed page {} times", info.flags);
            table.row(vec![String::new(), times]);
        }
        table.row(vec![String::new(), format!("[{}]", info.source)]);
        if let Some(differs) = info.differs {
            table.row(vec![String::new(), format!("not as published: {differs}")]);
        }
    }
    table.render()
}

/// The names of the settings that an FTL honours over its own page-validity store.
fn settings(info: &Info) -> Vec<&'static str> {
    Setting::ALL.into_iter().filter(|&setting| info.honours(setting)).map(Setting::name).collect()
}

fn victims() -> Vec<Row> {
    ftl::victim::table().iter().map(|entry| (entry.name, entry.summary, entry.source)).collect()
}

fn samples() -> Vec<Row> {
    workload::trace::samples().iter().map(|sample| (sample.name, sample.summary, sample.source)).collect()
}

fn placements() -> Vec<Row> {
    ftl::placement::table().iter().map(|entry| (entry.name, entry.summary, entry.source)).collect()
}

/// The page-validity stores with their own settings.
fn stores() -> String {
    let mut table = Table::new(&[("name", Align::Left), ("what it is, what can be set", Align::Left)]);
    for row in ftl::validity::table() {
        table.row(vec![row.name.to_owned(), row.summary.to_owned()]);
        if !row.settings.is_empty() {
            let settings: Vec<&str> = row.settings.iter().map(|setting| setting.name()).collect();
            table.row(vec![String::new(), format!("settings, of every FTL over it: {}", settings.join(", "))]);
        }
        table.row(vec![String::new(), format!("[{}]", row.source)]);
    }
    table.render()
}

fn sourced(rows: Vec<Row>) -> String {
    let mut table = Table::new(&[("name", Align::Left), ("what it is", Align::Left)]);
    for (name, summary, source) in rows {
        table.row(vec![name.to_owned(), summary.to_owned()]);
        table.row(vec![String::new(), format!("[{source}]")]);
    }
    table.render()
}

/// A program order as device profiles name it.
const fn order(order: ProgramOrder) -> &'static str {
    match order {
        ProgramOrder::Sequential => "sequential",
        ProgramOrder::Free => "free",
    }
}

fn devices() -> String {
    let mut table = Table::new(&[
        ("name", Align::Left),
        ("raw", Align::Right),
        ("visible", Align::Right),
        ("dies", Align::Right),
        ("read", Align::Right),
        ("program", Align::Right),
        ("program order", Align::Left),
        ("what it is", Align::Left),
    ]);
    for profile in profiles::profiles() {
        let d = &profile.geometry;
        let raw = u64::from(d.blocks) * u64::from(d.pages_per_block) * u64::from(d.page_bytes);
        table.row(vec![
            profile.name.to_string(),
            bytes(raw),
            format!("{:.0}%", profile.default_logical_ratio * 100.0),
            (d.channels * d.dies_per_channel).to_string(),
            format!("{} µs", profile.timing.read_ns / 1000),
            format!("{} µs", profile.timing.program_ns / 1000),
            order(profile.capabilities.program_order).to_owned(),
            profile.summary.to_string(),
        ]);
    }
    format!(
        "{}\n--capacity scales the number of blocks. openftl list devices --toml NAME prints one to change.\n",
        table.render()
    )
}

/// The option that states what a trace does not say; what a request is, only programs can state.
const fn option_for(what: Unsaid) -> Option<&'static str> {
    match what {
        Unsaid::TimeUnit => Some("--time-unit"),
        Unsaid::AddressUnit => Some("--lba-unit"),
        Unsaid::SizeUnit => Some("--size-unit"),
        Unsaid::Flag => Some("--flag"),
        Unsaid::Operation => None,
    }
}

fn traces() -> String {
    let mut table = Table::new(&[("format", Align::Left), ("what it is; its columns", Align::Left)]);
    for format in workload::formats() {
        table.row(vec![format.name.to_owned(), format.summary.to_owned()]);
        table.row(vec![String::new(), format.layout.to_owned()]);
        let options: Vec<&str> = format.unsaid.iter().filter_map(|what| option_for(*what)).collect();
        if !options.is_empty() {
            table.row(vec![String::new(), format!("takes {}", options.join(", "))]);
        }
    }
    format!(
        "{}\nFormats are found by the file's contents, plain or packed with gzip, zstd, xz or bzip2.\n",
        table.render()
    )
}

fn workloads() -> String {
    let mut out = String::new();
    let columns = [("workload", Align::Left), ("option", Align::Left), ("meaning", Align::Left)];
    let mut table = Table::new(&columns);
    for entry in workload::workloads() {
        table.row(vec![entry.name.to_owned(), String::new(), format!("{}, as in {}", entry.summary, entry.example)]);
        for parameter in entry.parameters {
            table.row(vec![String::new(), parameter.name.to_owned(), meaning(parameter)]);
        }
    }
    out.push_str(&table.render());
    out.push_str("\nOptions of every workload, unless it says otherwise:\n");
    let mut table = Table::new(&[("option", Align::Left), ("meaning", Align::Left)]);
    for parameter in workload::common_parameters() {
        table.row(vec![parameter.name.to_owned(), meaning(parameter)]);
    }
    out.push_str(&table.render());
    let names: Vec<&str> = workload::published_profiles().iter().map(|(name, _)| *name).collect();
    out.push_str(&format!("\nPublished profiles, as in profile:msnfs: {}.\n", names.join(", ")));
    out
}

fn meaning(parameter: &Parameter) -> String {
    let default = parameter.default.map_or_else(|| "off unless given".to_owned(), |value| format!("default {value}"));
    let unit = if parameter.unit.is_empty() { String::new() } else { format!(" [{}]", parameter.unit) };
    format!("{}{unit}; {default}", parameter.meaning)
}

fn as_json(what: Listing) -> Value {
    let rows = |rows: Vec<Row>| -> Value {
        rows.into_iter()
            .map(|(name, summary, source)| json!({"name": name, "summary": summary, "source": source}))
            .collect()
    };
    let parameters = |list: &[Parameter]| -> Value {
        list.iter()
            .map(|p| json!({"name": p.name, "unit": p.unit, "default": p.default, "meaning": p.meaning}))
            .collect()
    };
    match what {
        Listing::Ftls => ftl::ftls::infos()
            .iter()
            .map(|info| {
                json!({
                    "name": info.name,
                    "summary": info.summary,
                    "source": info.source,
                    "differs": info.differs,
                    "settings": settings(info),
                    "preset": info.preset.words(),
                    "validity": info.validity,
                    "after_power_loss": info.promise(),
                    "program_order": order(info.program_order),
                    "spare_reprograms": info.flags,
                    "mountable": info.is_mountable(),
                    "pages_programmed_a_write_at_most": info.bound.programs,
                    "longest_write": info.bound.longest,
                })
            })
            .collect(),
        Listing::Victims => rows(victims()),
        Listing::Placements => rows(placements()),
        Listing::Samples => rows(samples()),
        Listing::Stores => ftl::validity::table()
            .iter()
            .map(|row| {
                let settings: Vec<&str> = row.settings.iter().map(|setting| setting.name()).collect();
                json!({"name": row.name, "summary": row.summary, "source": row.source, "settings": settings})
            })
            .collect(),
        Listing::Devices => profiles::profiles().iter().map(|profile| json!(profile)).collect(),
        Listing::Traces => workload::formats()
            .iter()
            .map(|f| {
                let unsaid: Vec<&str> = f.unsaid.iter().map(|what| what.name()).collect();
                json!({"name": f.name, "summary": f.summary, "layout": f.layout, "unsaid": unsaid})
            })
            .collect(),
        Listing::Workloads => workload::workloads()
            .iter()
            .map(|entry| {
                let common = workload::common_parameters().iter().filter(|p| entry.takes_common(p.name));
                json!({
                    "name": entry.name,
                    "summary": entry.summary,
                    "example": entry.example,
                    "options": parameters(entry.parameters),
                    "common_options": common.map(|p| p.name).collect::<Vec<_>>(),
                })
            })
            .collect(),
    }
}
