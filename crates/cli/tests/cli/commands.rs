//! The commands beside `compare`.

use super::common::{folder, json_of, openftl, openftl_in, output_of, small_trace};
use std::process::{Command, Stdio};

const LISTS: [&str; 7] = ["ftls", "workloads", "traces", "devices", "victims", "placements", "stores"];

#[test]
fn lists_fit_100_columns_and_have_a_json_form() {
    for what in LISTS {
        let text = output_of(&["list", what]);
        assert!(text.lines().count() > 2, "{what}");
        for line in text.lines() {
            assert!(line.chars().count() <= 100 && !line.contains('\u{1b}'), "{what}: {line}");
        }
        let list = json_of(&["list", what, "--json"]);
        for row in list.as_array().unwrap() {
            let name = row["name"].as_str().unwrap();
            assert!(text.contains(name), "{what}: {name}");
        }
    }
}

#[test]
fn every_ftl_is_listed_with_its_settings() {
    let settings = |name: &str| {
        let list = json_of(&["list", "ftls", "--json"]);
        let row = list.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
        row["settings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(", ")
    };
    assert_eq!(settings("superblock"), "groups, maps");
    assert_eq!(
        settings("gecko"),
        "cache, segmented-lru, cache-ways, victim, placement, lanes, validity, gecko, wear, warm"
    );
    let text = output_of(&["list", "ftls"]);
    assert!(text.contains("needs a device that sets flags of a programmed page 2 times"), "{text}");
    // Long lines are folded.
    let unfolded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for name in ["dftl", "janus", "superblock"] {
        assert!(unfolded.contains(&format!("settings: {}", settings(name))), "{name} in {text}");
    }
    assert_eq!(json_of(&["list", "stores", "--json"])[3]["settings"], serde_json::json!(["gecko"]));
    assert!(output_of(&["list", "stores"]).contains("settings, of every FTL over it: gecko"));
}

#[test]
fn every_listed_device_prints_as_toml_that_is_read_back() {
    let folder = folder();
    for device in json_of(&["list", "devices", "--json"]).as_array().unwrap() {
        let name = device["name"].as_str().unwrap();
        let path = folder.path().join(format!("{name}.toml"));
        std::fs::write(&path, output_of(&["list", "devices", "--toml", name])).unwrap();
        let again = output_of(&["list", "devices", "--toml", path.to_str().unwrap()]);
        assert_eq!(again, std::fs::read_to_string(&path).unwrap());
    }
}

#[test]
fn a_trace_is_described() {
    let folder = folder();
    let path = small_trace(folder.path());
    let text = output_of(&["trace", "info", path.to_str().unwrap()]);
    for part in ["2 000: 1 714 writes", "64 pages of 4 KiB touched", "guessed"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let info = json_of(&["trace", "info", path.to_str().unwrap(), "--json"]);
    assert_eq!(info["requests"], 2000);
    assert_eq!(info["footprint"]["touched_pages"], 64);
}

#[test]
fn a_converted_trace_is_the_same_trace() {
    let folder = folder();
    let path = small_trace(folder.path());
    let before = json_of(&["trace", "info", path.to_str().unwrap(), "--json"]);
    for to in ["csv", "fio-v2", "fio-v3", "msr", "spc", "fivecolumn"] {
        let out = folder.path().join(to);
        output_of(&["trace", "convert", path.to_str().unwrap(), "--to", to, "-o", out.to_str().unwrap()]);
        let units = ["--time-unit", "ns", "--lba-unit", "sectors", "--size-unit", "sectors"];
        let units = if to == "fivecolumn" { &units[..] } else { &[] };
        let after = json_of(&[&["trace", "info", out.to_str().unwrap(), "--json"], units].concat());
        for field in ["requests", "writes", "read_bytes", "written_bytes", "footprint"] {
            assert_eq!(before[field], after[field], "{to}: {field}");
        }
        let printed = output_of(&["trace", "convert", path.to_str().unwrap(), "--to", to]);
        assert_eq!(printed, std::fs::read_to_string(&out).unwrap(), "{to}");
    }
}

/// Both of its forms have a trap: the unit of waits, and a time of 0.
#[test]
fn fio_plays_a_converted_trace_in_its_time() {
    if Command::new("fio").arg("--version").output().is_err() {
        eprintln!("left out: there is no fio on this machine");
        return;
    }
    let folder = folder();
    let (trace, disk) = (folder.path().join("trace.csv"), folder.path().join("disk"));
    let rows = [0_u64, 600_000_000].map(|at| format!("{at},{},write,0,4096\n", disk.display()));
    std::fs::write(&trace, format!("time_ns,device,op,offset,bytes\n{}", rows.concat())).unwrap();
    std::fs::File::create(&disk).unwrap().set_len(1 << 20).unwrap();
    for to in ["fio-v2", "fio-v3"] {
        let log = folder.path().join(to);
        output_of(&["trace", "convert", trace.to_str().unwrap(), "--to", to, "-o", log.to_str().unwrap()]);
        let played = Command::new("fio")
            .current_dir(folder.path())
            .args(["--name=job", "--ioengine=psync", "--write_lat_log=times"])
            .arg(format!("--read_iolog={}", log.display()))
            .output()
            .unwrap();
        assert!(played.status.success(), "{to}: {}", String::from_utf8_lossy(&played.stderr));
        let times = std::fs::read_to_string(folder.path().join("times_lat.1.log")).unwrap();
        let at_ms = |line: &str| line.split(',').next().and_then(|ms| ms.parse::<u64>().ok()).unwrap();
        let times: Vec<u64> = times.lines().map(at_ms).collect();
        // Waits count from the start of fio, which the first request follows.
        assert!(times.len() == 2 && (300..10_000).contains(&(times[1] - times[0])), "{to}: {times:?} ms");
    }
}

#[test]
fn a_fitted_profile_runs() {
    let folder = folder();
    let path = small_trace(folder.path());
    let out = folder.path().join("fit.toml");
    output_of(&["trace", "fit", path.to_str().unwrap(), "-o", out.to_str().unwrap()]);
    let workload = format!("profile:{}", out.display());
    let quick = ["compare", "--ftl", "page", "--capacity", "64MiB", "--writes", "5k", "--json"];
    let document = json_of(&[&quick[..], &["--workload", &workload]].concat());
    assert_eq!(document["results"][0]["host"]["writes"], 5_000);
}

#[test]
fn a_fitted_profile_costs_what_its_trace_does() {
    let folder = folder();
    let out = folder.path().join("fit.toml");
    let out = out.to_str().unwrap();
    for trace in ["sample:sqlite", "sample:git", "sample:postgres"] {
        let checked = json_of(&["trace", "fit", trace, "-o", out, "--check", "--json"]);
        // What is printed is what `compare` gives.
        let replayed = json_of(&["compare", trace, "--ftl", "page,dftl,fast,janus", "--json"]);
        let ftls = checked["ftls"].as_array().unwrap();
        assert_eq!(ftls.len(), 4);
        for (ftl, result) in ftls.iter().zip(replayed["results"].as_array().unwrap()) {
            assert_eq!(ftl["trace"], result["write_amplification"]["programs_per_write"], "{ftl}");
            assert!(ftl["error_percent"].as_f64().unwrap().abs() < 15.0, "{trace}: {ftl}");
        }
    }
    let text = output_of(&["trace", "fit", "sample:git", "-o", out, "--check", "--ftl", "page,gecko"]);
    assert!(text.contains("\nftl    trace  profile  error\npage   1.0") && text.contains("gecko"), "{text}");
    let ran = openftl(&["trace", "fit", "sample:git", "-o", out, "--ftl", "page"]);
    assert!(ran.code == 2 && ran.err.contains("--check"), "{}", ran.err);
    let reads = folder.path().join("reads.csv");
    std::fs::write(&reads, "time_ns,device,op,offset,bytes\n1,0,read,0,4096\n2,0,read,8192,4096\n").unwrap();
    let ran = openftl(&["trace", "fit", reads.to_str().unwrap(), "-o", out, "--check"]);
    assert!(ran.code == 2 && ran.err.contains("the trace has none"), "{}", ran.err);
}

#[test]
fn every_example_workload_runs() {
    for workload in json_of(&["list", "workloads", "--json"]).as_array().unwrap() {
        let example = workload["example"].as_str().unwrap();
        let quick = ["compare", "--ftl", "page", "--capacity", "256MiB", "--writes", "5k", "--precondition", "fill"];
        output_of(&[&quick[..], &["--workload", example]].concat());
    }
}

#[test]
fn bench_runs_small_and_gives_rates() {
    let document = json_of(&["bench", "--quick", "--json"]);
    for case in document["cases"].as_array().unwrap() {
        assert!(case["host_writes_per_s"].as_f64().unwrap() > 0.0, "{case}");
        assert!(case["of_goal"].is_number() && case["digest"].is_string());
        assert!(case["of_bare"].as_f64().unwrap() > 0.0 && case["bare_programs_per_write"].as_f64().unwrap() > 1.0);
    }
    let text = output_of(&["bench", "--quick", "--case", "page-8g"]);
    assert!(text.contains("of target") && text.contains("of bare loop") && !text.contains("dftl-8g"), "{text}");
}

#[test]
fn bench_compares_sizes() {
    let sizes = ["bench", "--sizes", "64MiB,128MiB", "--ftl", "page,nftl", "--writes", "2k"];
    let document = json_of(&[&sizes[..], &["--json"]].concat());
    for ftl in document["ftls"].as_array().unwrap() {
        assert!(ftl["fastest_over_slowest"].as_f64().unwrap() >= 1.0, "{ftl}");
        let capacity = |at: usize| ftl["rates"][at]["capacity_bytes"].as_u64().unwrap();
        assert_eq!((capacity(0), capacity(1)), (64 << 20, 128 << 20));
    }
    let text = output_of(&sizes);
    assert!(text.contains("128 MiB") && text.contains("nftl") && text.contains("fastest/slowest"), "{text}");
}

#[test]
fn nothing_is_lost_and_the_table_says_so() {
    let few = ["crash", "--ftl", "page,bast", "--cuts", "300", "--mode", "log", "--faults", "programs"];
    let text = output_of(&few);
    // The promise is wrapped within its column.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["page 300", "mount ops", "every completed write is there"] {
        assert!(words.contains(part), "{part} in {text}");
    }
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let report = &json_of(&[&few[..], &["--json"]].concat())["report"];
    assert_eq!((&report["seed"], &report["ftls"][0]["cut_points"]), (&1.into(), &300.into()));
    assert_eq!(report["ftls"][0]["failures"].as_array().unwrap().len(), 0);
}

#[test]
fn promises_are_explored_fault_by_fault_and_written_as_a_table() {
    let folder = folder();
    let few = ["crash", "--ftl", "page,dftl", "--cuts", "60", "--mode", "log", "--faults", "programs,mounts"];
    let ran = openftl_in(folder.path(), &[&few[..], &["--json", "--promises", "p.md"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let rows = document["promises"].as_array().unwrap();
    let faults: Vec<_> = rows.iter().map(|row| row["fault"].as_str().unwrap()).collect();
    let expected = ["one cut", "no battery, one cut", "programs, one cut", "mounts, one cut", "all at once, one cut"];
    assert_eq!(faults, expected);
    assert!(rows.iter().all(|row| row["report"]["ftls"][1]["cut_points"] == 60));
    let table = std::fs::read_to_string(folder.path().join("p.md")).unwrap();
    assert!(table.contains("| fault | page | dftl | runs |"), "{table}");
    for fault in expected {
        let row = table.lines().find(|line| line.starts_with(&format!("| {fault} |"))).unwrap();
        let kept = |cell: &str| ["kept", "trims"].contains(&cell.trim());
        assert!(row.split('|').skip(2).take(2).all(kept) != (fault == "no battery, one cut"), "{row}");
    }
}

#[test]
fn a_table_of_promises_that_cannot_be_written_is_refused_at_once() {
    let ran = openftl(&["crash", "--promises", "no/such/folder/p.md"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("cannot write no/such/folder/p.md"), "{}", ran.err);
}

#[test]
fn ftls_that_need_no_battery_are_named_when_it_is_left_out() {
    let few = ["crash", "--ftl", "page,dftl", "--cuts", "50", "--mode", "log", "--faults", "none", "--no-battery"];
    let text = output_of(&few);
    assert!(text.contains("--no-battery means nothing to page, which runs without."), "{text}");
    let document = json_of(&[&few[..], &["--json"]].concat());
    assert_eq!(document["not_taken"], serde_json::json!([{"options": ["--no-battery"], "ftls": ["page"]}]));
}

#[test]
fn a_case_that_was_mended_goes_well_again() {
    let ids = include_str!("../../../crash/tests/regressions.txt");
    let id = ids.lines().find(|line| line.starts_with("page-")).unwrap();
    assert!(output_of(&["crash", "--replay", id]).contains("goes well"));
    assert!(json_of(&["crash", "--replay", id, "--json"])["failure"].is_null());
}

#[test]
fn completions_and_man_pages_name_the_options() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(output_of(&["completions", shell]).contains("logical-ratio"), "{shell}");
    }
    assert!(output_of(&["man"]).contains(".TH openftl 1"));
    let folder = folder();
    output_of(&["man", "--dir", folder.path().join("man").to_str().unwrap()]);
    for page in ["openftl.1", "openftl-compare.1", "openftl-trace-info.1"] {
        assert!(folder.path().join("man").join(page).is_file(), "{page}");
    }
}

#[test]
fn help_fits_100_columns() {
    for command in [&["--help"][..], &["compare", "--help"], &["compare", "-h"], &["trace", "info", "--help"]] {
        for line in output_of(command).lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
    assert_eq!(openftl(&["--version"]).out, format!("openftl {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for arguments in [&["list", "workloads"][..], &["completions", "bash"], &["list", "devices", "--json"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_openftl"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}
