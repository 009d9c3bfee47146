//! What the same requests cost every FTL, under every setting that it honours, is what it was: each
//! flash operation of the run and of the mount after it, by purpose, the steps of the mount, and
//! RAM.
//!
//! The table beside this file holds it. A change that is meant to alter it writes it anew with
//! `OPENFTL_RENEW=1`; the difference belongs to what a reviewer reads.

#![allow(clippy::unwrap_used)]

use super::settings::{Outcome, others, plain, run};
use ftl::{Config, Counts, FtlError, Purpose, Setting};
use nand::SimNand;
use openftl_ftl as ftl;
use std::fmt::Write as _;
use std::path::Path;

/// Reads, reads of spare areas, programs and erases of each purpose that has any, and programs of
/// flags if there are some.
fn told(counts: &Counts) -> String {
    let mut text = String::new();
    for purpose in Purpose::ALL {
        let ops = counts.of(purpose);
        if *ops != ftl::OpCounts::default() {
            let ftl::OpCounts { reads, spare_reads, programs, erases, flag_programs } = ops;
            write!(text, " {}={reads}/{spare_reads}/{programs}/{erases}", purpose.name()).unwrap();
            if *flag_programs > 0 {
                write!(text, "/{flag_programs}").unwrap();
            }
        }
    }
    text
}

fn lines(name: &str, config: &str, outcome: &Result<Outcome, FtlError>, table: &mut String) {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return writeln!(table, "{name} {config} refused: {error}").unwrap(),
    };
    let bytes: u64 = outcome.ram.iter().map(|item| item.bytes).sum();
    writeln!(table, "{name} {config} run{} ram={bytes}", told(&outcome.counts)).unwrap();
    match &outcome.mount {
        None => {}
        Some(Ok((counts, report))) => {
            let ftl::MountReport { steps, rebuilt_entries, unreadable_pages, .. } = report;
            let found = format!("rebuilt={rebuilt_entries} unreadable={unreadable_pages}");
            writeln!(table, "{name} {config} mount{} {found}", told(counts)).unwrap();
            for ftl::MountStep { name: step, ops } in steps.iter().filter(|_| config == "plain") {
                let ftl::OpCounts { reads, spare_reads, programs, erases, .. } = ops;
                writeln!(table, "{name} {config} step {step}: {reads}/{spare_reads}/{programs}/{erases}").unwrap();
            }
        }
        Some(Err(error)) => writeln!(table, "{name} {config} mount refused: {error}").unwrap(),
    }
}

fn table() -> String {
    let mut table =
        String::from("# FTL, setting:value, operations by purpose: reads/spare reads/programs/erases; RAM in bytes\n");
    for entry in table::table::<SimNand>() {
        let preset = &entry.info.preset;
        lines(entry.info.name, "plain", &run(&entry, &plain()), &mut table);
        for setting in Setting::ALL.into_iter().filter(|setting| entry.info.honours(*setting)) {
            for (at, config) in
                others(setting).iter().enumerate().filter(|(_, config)| config.or(preset) != plain().or(preset))
            {
                let config: &Config = config;
                lines(entry.info.name, &format!("{}:{at}", setting.name()), &run(&entry, config), &mut table);
            }
        }
    }
    table
}

/// Pointers are shorter elsewhere, and RAM is less.
fn comparable(line: &str) -> &str {
    let bytes = if cfg!(target_pointer_width = "64") { None } else { line.find(" ram=") };
    &line[..bytes.unwrap_or(line.len())]
}

#[test]
fn the_same_requests_cost_what_they_did() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/effort.txt");
    let now = table();
    if std::env::var_os("OPENFTL_RENEW").is_some() {
        return std::fs::write(file, now).unwrap();
    }
    let then = std::fs::read_to_string(&file).unwrap();
    let mut pairs = now.lines().map(comparable).zip(then.lines().map(comparable));
    let differ = pairs.find(|(now, then)| now != then);
    assert_eq!(differ.map(|(now, _)| now), differ.map(|(_, then)| then), "the first line that differs");
    assert_eq!(now.lines().count(), then.lines().count(), "lines of the table");
}
