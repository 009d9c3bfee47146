//! Real traces, where they are present: `OPENFTL_TRACES` names their folder, or they lie beside the
//! clone.

use super::common::{folder, json_of, openftl, output_of};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn traces() -> Vec<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("OPENFTL_TRACES").map_or(beside, PathBuf::from);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e != "md"));
    files.sort();
    files
}

#[test]
fn every_trace_is_compared_under_every_ftl() {
    let files = traces();
    if files.is_empty() {
        println!("skipped: no traces here; set OPENFTL_TRACES to a folder of them");
        return;
    }
    let ftls = json_of(&["list", "ftls", "--json"]);
    let mut failed = Vec::new();
    // One device does what today's flash does, the other what an FTL may need beyond that.
    let is_modern = |ftl: &serde_json::Value| ftl["program_order"] == "sequential" && ftl["spare_reprograms"] == 0;
    for (modern, device, ratio) in [(true, "demo", "0.7"), (false, "janus-slc", "0.8")] {
        let all = ftls.as_array().unwrap().iter().filter(|ftl| is_modern(ftl) == modern);
        let names: Vec<&str> = all.map(|ftl| ftl["name"].as_str().unwrap()).collect();
        assert!(!names.is_empty(), "{ftls}");
        for file in &files {
            let few = ["--precondition", "fill", "--writes", "10k", "--logical-ratio", ratio, "--json"];
            let what = ["compare", file.to_str().unwrap(), "--device", device, "--ftl", &names.join(",")];
            let ran = openftl(&[&what[..], &few].concat());
            if ran.code != 0 {
                failed.push(format!("{}: {}", file.display(), ran.err));
                continue;
            }
            let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
            assert_eq!(document["results"].as_array().unwrap().len(), names.len(), "{}", file.display());
        }
        println!("{} traces on {device} under {}", files.len(), names.join(", "));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_generated_trace_has_the_requests_of_its_workload() {
    let folder = folder();
    let generate =
        ["trace", "generate", "uniform:reads=25,rate=1000,flush=50", "--requests", "4k", "--logical", "64MiB"];
    let first = output_of(&[&generate[..], &["--seed", "3"]].concat());
    assert_eq!(first, output_of(&[&generate[..], &["--seed", "3"]].concat()));
    assert!(first != output_of(&[&generate[..], &["--seed", "4"]].concat()) && first.lines().count() == 4001);
    for to in ["csv", "fio-v2", "fio-v3", "msr", "spc", "fivecolumn"] {
        let path = folder.path().join(to);
        output_of(&[&generate[..], &["--to", to, "-o", path.to_str().unwrap()]].concat());
        let info = json_of(&["trace", "info", path.to_str().unwrap(), "--json"]);
        let [reads, writes] = ["reads", "writes"].map(|kind| info[kind].as_u64().unwrap());
        assert!((900..1100).contains(&reads) && (2800..3100).contains(&writes), "{to}: {info}");
    }
}

#[test]
fn a_trace_comes_from_standard_input() {
    let generated = output_of(&["trace", "generate", "uniform:reads=25", "--requests", "500", "--logical", "16MiB"]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_openftl"))
        .args(["trace", "info", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(generated.as_bytes()).unwrap();
    let info: serde_json::Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((info["requests"].as_u64(), info["name"].as_str()), (Some(500), Some("standard input")));
}

#[test]
fn what_cannot_be_generated_says_why() {
    for (options, why) in [
        (["unifrm", "--requests", "5"], "did you mean `uniform`?"),
        (["uniform", "--requests", "0"], "at least 1"),
        (["uniform", "--logical", "1KiB"], "is no page of a disk"),
        (["uniform:size=1MiB", "--logical", "64KiB"], "choose a smaller size"),
    ] {
        let ran = openftl(&[&["trace", "generate"], &options[..]].concat());
        assert!(ran.code == 2 && ran.err.contains(why), "{options:?}: {} {}", ran.code, ran.err);
    }
}
