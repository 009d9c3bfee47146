//! Every FTL does on every shape of device what it did: each flash operation, what it writes and
//! each answer, over cuts and all other faults.
//!
//! The table beside the regressions holds one number for each pair. A number says nothing about
//! right or wrong: it shows that a change meant to alter nothing altered nothing. A change meant to
//! alter something writes the table anew with `OPENFTL_RENEW=1`; the lines that differ belong to
//! what a reviewer reads.

#![allow(clippy::unwrap_used)]

use openftl_crash::{Options, SHAPES, run};
use std::fmt::Write as _;
use std::path::Path;
use std::thread;
use table::AnyBytes;

fn lines(ftl: &str) -> String {
    let mut lines = String::new();
    for shape in SHAPES {
        let report = run(&Options::trail(ftl, shape.name), &mut |_| {}).unwrap();
        let ftl = &report.ftls[0];
        assert!(ftl.failures.is_empty(), "{:#?}", ftl.failures);
        if ftl.not_mountable.is_none() {
            writeln!(lines, "{} {} {} {:016x}", ftl.name, shape.name, ftl.cut_points, ftl.trail).unwrap();
        }
    }
    lines
}

fn table() -> String {
    let table = table::table::<AnyBytes>();
    let lines: Vec<String> = thread::scope(|scope| {
        let each: Vec<_> = table.iter().map(|entry| scope.spawn(|| lines(entry.info.name))).collect();
        each.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    format!("# FTL, shape, cut points, the trail of all that it did\n{}", lines.concat())
}

#[test]
fn every_ftl_does_what_it_did() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/behaviour.txt");
    let now = table();
    if std::env::var_os("OPENFTL_RENEW").is_some() {
        return std::fs::write(file, now).unwrap();
    }
    let then = std::fs::read_to_string(&file).unwrap();
    let differ: Vec<_> = now.lines().filter(|line| !then.lines().any(|other| other == *line)).collect();
    assert!(differ.is_empty() && now.lines().count() == then.lines().count(), "{differ:#?}");
}
