//! The table of FTLs under power cuts and other faults, a sample of each.

#![allow(clippy::unwrap_used)]

use openftl_crash::{Fault, Mode, Options, OptionsError, Progress, Report, run};
use std::collections::{BTreeMap, BTreeSet};

fn clean(options: &Options) -> Report {
    let report = run(options, &mut |_| {}).unwrap();
    for ftl in &report.ftls {
        assert!(ftl.failures.is_empty(), "{:#?}", ftl.failures);
        assert_eq!(ftl.not_mountable.is_some(), ftl.cut_points == 0, "{}", ftl.name);
    }
    report
}

#[test]
fn a_sample_of_every_fault_finds_nothing() {
    let report = clean(&Options { cuts: 1500, images: 70, endurance: 100, ..Options::sample() });
    let page = report.ftls.iter().find(|ftl| ftl.name == "page").unwrap();
    assert_eq!(page.cut_points, 1500);
    assert_eq!(page.by_depth.iter().sum::<u64>(), 1500);
    assert!(page.by_depth[1] > page.by_depth[0], "each first cut has several second ones");
    assert!(["worn", "images", "endurance"].iter().all(|fault| page.other_runs[fault] > 0));
    assert!(serde_json::to_string(&report).unwrap().contains("\"cuts_per_s\""));
}

#[test]
fn every_operation_with_every_outcome_and_three_cuts_in_a_row() {
    let mut outcomes = BTreeSet::new();
    for (mode, depth, cuts) in
        [(Mode::Exhaustive, 1, 3000), (Mode::Exhaustive, 3, 2000), (Mode::Random, 2, 1000), (Mode::Log, 1, 500)]
    {
        let faults = if depth == 1 { Fault::ALL[..5].to_vec() } else { vec![] };
        let report = clean(&Options { mode, depth, cuts, faults, ..Options::default() });
        let page = &report.ftls[0];
        assert!(page.by_depth[..depth as usize].iter().all(|n| *n > 0), "{page:?}");
        outcomes.extend(page.by_outcome.keys().map(ToString::to_string));
    }
    assert!(["not-done", "done", "torn", "half-erased"].iter().all(|outcome| outcomes.contains(*outcome)));
}

#[test]
fn the_same_options_give_the_same_report_but_for_the_times() {
    let ftls = ["page", "bast", "blockset"].map(String::from).to_vec();
    let options = Options { ftls, mode: Mode::Random, cuts: 500, depth: 2, ..Options::default() };
    let options = Options { faults: vec![Fault::Programs], ..options };
    let [alone, together, again] = [1, 3, 3].map(|jobs| {
        let mut report = clean(&Options { jobs, ..options.clone() });
        for ftl in &mut report.ftls {
            (ftl.seconds, ftl.cuts_per_s) = (0.0, 0.0);
        }
        report
    });
    assert_eq!(alone, together);
    assert_eq!(together, again);
}

#[test]
fn progress_of_each_ftl_grows_until_it_ends() {
    let options = Options { ftls: vec!["page".into(), "dftl".into()], cuts: 200, faults: vec![], ..Options::default() };
    let mut last = BTreeMap::new();
    let report = run(&options, &mut |Progress { ftl, cut_points, wanted, ended }| {
        let (before, over) = last.insert(ftl, (cut_points, ended)).unwrap_or_default();
        assert!(!over && cut_points >= before && cut_points <= wanted, "{ftl}: {before}, {cut_points} of {wanted}");
    });
    for ftl in report.unwrap().ftls {
        assert_eq!(last[ftl.name], (ftl.cut_points, true));
    }
    assert_eq!(last.len(), 2);
}

#[test]
fn options_that_name_nothing_are_refused_with_what_there_is() {
    let ask = |options: Options| run(&options, &mut |_| {}).unwrap_err().to_string();
    assert!(ask(Options { ftls: vec!["pgae".into()], ..Options::default() }).contains("page, dftl"));
    assert!(ask(Options { geometry: Some("huge".into()), ..Options::default() }).contains("tiny, small"));
    for depth in [0, 4] {
        let error = run(&Options { depth, ..Options::default() }, &mut |_| {}).unwrap_err();
        assert!(matches!(error, OptionsError::Range { what: "depth", .. }));
    }
}

#[test]
fn without_its_battery_an_ftl_loses_writes_and_nothing_else() {
    let options = Options {
        ftls: vec!["dftl".into()],
        mode: Mode::Linear,
        cuts: 1000,
        depth: 2,
        images: 30,
        endurance: 60,
        worn_step: 97,
        ..Options::default()
    };
    assert_eq!(clean(&options).ftls[0].lost_writes, 0);
    let report = clean(&Options { battery: false, ..options });
    assert!(report.ftls[0].lost_writes > report.ftls[0].cut_points / 10, "{report:?}");
}

/// Three seeds in a row try every image once together, and one seed alone a third of them.
#[test]
fn seeds_in_a_row_share_the_scenarios() {
    let runs = |one_in, seed| {
        let (ftls, geometry) = (vec!["page".into()], Some("tiny".into()));
        let options = Options {
            ftls,
            geometry,
            faults: vec![Fault::Images],
            cuts: 1,
            images: 7,
            one_in,
            seed,
            ..Options::default()
        };
        run(&options, &mut |_| {}).unwrap().ftls[0].other_runs["images"]
    };
    assert_eq!(runs(1, 5), 14, "seven images, and as many with wrong bits");
    assert_eq!((5..8).map(|seed| runs(3, seed)).sum::<u64>(), 14);
    assert!(runs(3, 5) < 7);
}
