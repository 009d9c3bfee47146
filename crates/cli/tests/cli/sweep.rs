//! `openftl sweep`: every combination, kept as it ends, averaged over seeds.

use super::common::{folder, json_of, openftl, output_of};
use std::path::Path;

const QUICK: [&str; 6] = ["--capacity", "64MiB", "--writes", "3k", "--precondition", "fill"];

fn sweep<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["sweep"], options, &["--"], &QUICK[..]].concat()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_combination_is_run_once_and_kept() {
    let folder = folder();
    let [out, csv, page] = ["runs.jsonl", "runs.csv", "page.html"].map(|name| folder.path().join(name));
    let options = ["--ftl", "page,dftl", "--logical-ratio", "0.6:0.7:0.1", "--seed", "1..2", "--workload"];
    let options = [&options[..], &["uniform,zipf:theta={0.5,0.9}", "--out", out.to_str().unwrap()]].concat();
    let files = ["--csv", csv.to_str().unwrap(), "--html", page.to_str().unwrap()];
    let table = output_of(&sweep(&[&options[..], &files].concat()));
    // Three workloads, two shares, two FTLs.
    assert_eq!(table.lines().count(), 1 + 12, "{table}");
    assert!(table.lines().skip(1).all(|line| line.contains('±')), "{table}");
    assert!(text(&page).contains("zipf:theta=0.9"));
    let (rows, runs) = (text(&csv), text(&out));
    assert_eq!((rows.lines().count(), runs.lines().count()), (1 + 24, 24));
    // A run alone gives the same.
    let row: serde_json::Value = serde_json::from_str(runs.lines().last().unwrap()).unwrap();
    let command = row["command"].as_str().unwrap().to_owned() + " --json";
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let alone = json_of(&words);
    assert_eq!(alone["results"][0]["flash"], row["result"]["flash"], "{command}");
    assert_eq!(alone["settings"][0], row["settings"], "{command}");
    // Going on takes what is there, and does what is not.
    let refused = openftl(&sweep(&options));
    assert!(refused.code == 1 && refused.err.contains("--resume"), "{}", refused.err);
    let kept: String = runs.lines().skip(1).map(|line| format!("{line}\n")).collect();
    std::fs::write(&out, &kept[..kept.len() - 9]).unwrap();
    let again = [&options[..], &["--resume", "--jobs", "1"], &files].concat();
    assert_eq!(output_of(&sweep(&again)), table);
    assert_eq!((text(&csv), text(&out).lines().count()), (rows, 24));
}

#[test]
fn a_run_that_fails_is_a_row_that_says_why() {
    let folder = folder();
    let csv = folder.path().join("runs.csv");
    let options = ["--ftl", "page", "--logical-ratio", "0.7,0.9999", "--json", "--csv", csv.to_str().unwrap()];
    let ran = openftl(&sweep(&options));
    let said = ["failed: openftl compare --workload=uniform", "1 of 2 runs failed"];
    assert!(ran.code == 1 && said.iter().all(|part| ran.err.contains(part)), "{}", ran.err);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["schema"], "openftl-sweep/1");
    assert_eq!(document["runs"][0]["failed"], serde_json::Value::Null);
    assert!(document["runs"][1]["failed"].as_str().unwrap().len() > 20, "{}", document["runs"][1]);
    assert_eq!((document["means"][0]["failed"].as_u64(), document["means"][1]["failed"].as_u64()), (Some(0), Some(1)));
    assert_eq!(text(&csv).lines().count(), 3);
}

#[test]
fn what_cannot_be_followed_is_refused_before_anything_is_run() {
    for (options, parts) in [
        (&["--ftl", "page,geko"][..], &["geko", "gecko"][..]),
        (&["--vary", "victim=greedy,gredy"], &["gredy", "greedy"]),
        (&["--vary", "victim"], &["names no values"]),
        (&["--vary", "nothing=1"], &["nothing"]),
        (&["--seed", "3..1"], &["3..1", "goes down"]),
        (&["--seed", "1,1"], &["seed", "before"]),
        (&["--workload", "zipf:theta={0.5"], &["{", "}"]),
        (&["--vary", "gecko-t=2,4", "--ftl", "page"], &["--gecko-t", "nothing to page"]),
    ] {
        let ran = openftl(&sweep(options));
        assert!(ran.code == 2 && parts.iter().all(|part| ran.err.contains(part)), "{options:?}: {}", ran.err);
    }
}
