//! `docs/ftls.md` says what the table of FTLs says now. `OPENFTL_RENEW=1` writes it anew.

#![allow(clippy::unwrap_used)]

use ftl::Setting;
use nand::{ProgramOrder, SimNand};
use openftl_ftl as ftl;
use std::fmt::Write as _;
use std::path::Path;

/// The table of FTLs as a document.
fn ftls() -> String {
    let mut out = String::from(
        "# Flash translation layers\n\n\
         Written by `cargo xtask docs` from the table in `crates/ftl/src/ftls/mod.rs`; `openftl list ftls` prints the same.\n\n\
         Settings are what can be chosen of an FTL. `openftl compare` refuses an option that none of its FTLs has a setting for, and says \
         which FTLs ran without; a test changes every setting under every FTL. Most have the name of their option; `wear` is \
         `--level-wear`, `gecko` all that begins with `--gecko-`, `battery` is left out by `openftl crash --no-battery`, and \
         `janus-utilisation` is set by programs only.\n\n\
         | name | what it is | published in | settings | page validity | program order | after power loss |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for entry in table::table::<SimNand>() {
        let info = entry.info;
        let settings: Vec<&str> = Setting::ALL.into_iter().filter(|&s| info.honours(s)).map(Setting::name).collect();
        let preset = info.preset.words();
        let preset = if preset.is_empty() { String::new() } else { format!("; by default {}", preset.join(", ")) };
        let settings = settings.join(", ") + &preset;
        let validity = info.validity.map_or_else(|| "none".to_owned(), |name| format!("`{name}`{}", mountable(&entry)));
        let order = match info.program_order {
            ProgramOrder::Sequential => "any device",
            ProgramOrder::Free => "needs free program order",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {settings} | {validity} | {order} | {} |",
            info.name,
            info.summary,
            info.differs.map_or_else(
                || info.source.to_owned(),
                |differs| format!("{}. Not as published: {differs}", info.source)
            ),
            info.promise()
        );
    }
    stores(&mut out);
    out
}

/// Over which page-validity stores an FTL can be mounted, in words; asked of its mount, which
/// refuses the others.
fn mountable(entry: &ftl::ftls::Entry<SimNand>) -> String {
    let dimensions = nand::geometry::Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 128,
        pages_per_block: 32,
        page_bytes: 2048,
        spare_bytes: 64,
    };
    let (Some(mount), Ok(geometry)) = (entry.mount, nand::Geometry::new(dimensions)) else { return String::new() };
    let mounts = |store: &&ftl::validity::Entry| {
        let can = nand::Capabilities { spare_reprograms: entry.info.flags, ..nand::Capabilities::MODERN };
        let flash = ftl::Flash::new(SimNand::new(geometry, can));
        let config = ftl::Config { validity: Some(store.name), ..ftl::Config::new(100) };
        !matches!(mount(flash, &config), Err(ftl::FtlError::Unsupported { .. }))
    };
    let names: Vec<&str> = ftl::validity::table().iter().filter(mounts).map(|store| store.name).collect();
    match names.len() {
        1 => "; mounts over no other".to_owned(),
        all if all == ftl::validity::table().len() => "; mounts over any".to_owned(),
        _ => format!("; mounts over {}", names.join(", ")),
    }
}

/// The table of page-validity stores.
fn stores(out: &mut String) {
    out.push_str(
        "\n# Page-validity stores\n\n\
         Written from the table in `crates/ftl/src/validity/mod.rs`; `openftl list stores` prints the same. Any of them works under any \
         FTL that has one (`openftl compare --validity NAME`); where not all of them can be mounted the first table says so.\n\n\
         | name | what it is | published in | settings of its own |\n\
         |---|---|---|---|\n",
    );
    for entry in ftl::validity::table() {
        let settings: Vec<&str> = entry.settings.iter().map(|setting| setting.name()).collect();
        let settings = if settings.is_empty() { "none".to_owned() } else { settings.join(", ") };
        let _ = writeln!(out, "| `{}` | {} | {} | {settings} |", entry.name, entry.summary, entry.source);
    }
}

#[test]
fn the_table_of_ftls_is_documented() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ftls.md");
    let now = ftls();
    if std::env::var_os("OPENFTL_RENEW").is_some() {
        return std::fs::write(file, now).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap();
    let differ = found.lines().zip(now.lines()).find(|(found, now)| found != now);
    assert_eq!(differ.map(|(found, _)| found), differ.map(|(_, now)| now), "run `cargo xtask docs`");
    assert_eq!(found, now, "run `cargo xtask docs`");
}
