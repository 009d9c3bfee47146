//! The table of FTLs under power cuts and other faults, a sample of each.

#![allow(clippy::unwrap_used)]

use openftl_crash::{Options, run};

#[test]
fn a_sample_of_every_fault_finds_nothing() {
    let report = run(&Options { cuts: 3000, ..Options::sample() }, &mut |_| {}).unwrap();
    println!("{}", serde_json::to_string_pretty(&report).unwrap());
    assert!(report.is_clean());
}
