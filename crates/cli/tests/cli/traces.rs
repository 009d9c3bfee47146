//! Real traces, where they are present: `OPENFTL_TRACES` names their folder, or they lie beside the
//! clone.

use super::common::{json_of, openftl};
use std::path::{Path, PathBuf};

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
