//! `openftl compare` as a user runs it.

use super::common::{folder, json_of, openftl, output_of, small_trace};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Small and quick.
const QUICK: [&str; 5] = ["compare", "--capacity", "64MiB", "--writes", "20k"];

fn quick<'a>(more: &[&'a str]) -> Vec<&'a str> {
    QUICK.iter().copied().chain(more.iter().copied()).collect()
}

fn assert_plain(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
    assert!(!text.contains('\u{1b}') && !text.contains('\r'), "escape sequences in a pipe");
}

/// One test: the run takes a while without optimisation.
#[test]
fn without_arguments_it_compares_three_ftls_says_what_to_see_and_is_what_the_readme_shows() {
    let ran = openftl(&["compare"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_plain(&ran.out);
    assert_plain(&ran.err);
    for part in ["\n  page ", "\n  dftl ", "\n  gecko ", "total", "RAM", "erases", "What to see", "What to try next"] {
        assert!(ran.out.contains(part), "{part} in {}", ran.out);
    }
    let readme = include_str!("../../../../README.md");
    let block = readme.split_once("<!-- openftl compare -->\n```\n").unwrap().1.split_once("\n```").unwrap().0;
    assert!(ran.out.contains(block), "run `cargo xtask docs`");
}

#[test]
fn the_capacity_that_an_error_names_does() {
    let timed = ["compare", "--timing", "queued", "--ftl", "page", "--precondition", "none", "--writes", "100"];
    let ran = openftl(&[&timed[..], &["--capacity", "64MiB"]].concat());
    assert_eq!(ran.code, 2, "{}", ran.err);
    let (_, named) = ran.err.split_once("page works with --capacity ").unwrap();
    let capacity = named.split(' ').next().unwrap();
    output_of(&[&timed[..], &["--capacity", capacity]].concat());
}

/// What the description of the card says of its Table 1: 174 us in the array, then 4 KiB or 32 KiB
/// with their share of the spare area at 290 B/us, and over the link to the host at 312 B/us.
#[test]
fn a_card_that_reads_parts_of_pages_is_timed_so() {
    let reads = |size: &str| {
        let workload = format!("uniform:reads=90,size={size}");
        let card =
            ["compare", "--device", "lftl-card", "--capacity", "16GiB", "--ftl", "page", "--precondition", "none"];
        let load = ["--timing", "queued", "--queue-depth", "1", "--writes", "1000", "--workload", &workload, "--json"];
        let document = json_of(&[&card[..], &load].concat());
        assert_eq!(document["settings"][0]["device"]["limits"]["read_unit_bytes"], 4096);
        document["results"][0]["latency_us"]["read"].clone()
    };
    for (size, bytes) in [("4KiB", 4096.0), ("32KiB", 32768.0)] {
        let expected = 174.0 + bytes * (32768.0 + 512.0) / 32768.0 / 290.0 + bytes / 312.0;
        let found = reads(size)["max"].as_f64().unwrap();
        assert!((found / expected - 1.0).abs() < 0.001, "{size}: {found} us for {expected}");
    }
}

#[test]
fn the_json_has_every_field_of_its_schema() {
    let document = json_of(&quick(&["--json"]));
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    for (result, ftl) in results.iter().zip(["page", "dftl", "gecko"]) {
        assert_eq!(result["ftl"], ftl);
        assert_eq!(result["device"], "demo");
        assert_eq!(result["workload"], "uniform");
        assert_eq!(result["seed"], 1);
        for field in ["writes", "reads", "trims"] {
            assert!(result["host"][field].is_u64(), "host.{field}");
        }
        assert_eq!(result["host"]["writes"], 20_000);
        check_purposes(result);
        assert!(result["ram_bytes"]["total"].as_u64().unwrap() > 0);
        for field in ["erases_total", "max", "mean", "stddev"] {
            assert!(result["wear"][field].is_number(), "wear.{field}");
        }
        for field in ["wall_s", "host_writes_per_s", "peak_memory_bytes"] {
            assert!(result["simulation"][field].is_number(), "simulation.{field}");
        }
        assert!(result.get("latency_us").is_none());
    }
}

/// The results of a comparison without what the computer had to do with them.
fn results_of(arguments: &[&str]) -> Vec<Value> {
    results_in(json_of(&quick(arguments)))
}

fn results_in(mut document: Value) -> Vec<Value> {
    for result in document["results"].as_array_mut().unwrap() {
        result.as_object_mut().unwrap().remove("simulation");
    }
    document["results"].as_array().unwrap().clone()
}

#[test]
fn a_write_buffer_is_told_described_and_counted() {
    let load = ["--workload", "zipf:theta=0.9,reads=20,flush=1000,size=512", "--ftl", "page,gecko", "--json"];
    let with = |more: &[&'static str]| [&load[..], more].concat();
    let without = results_of(&load);
    assert_eq!(results_of(&with(&["--write-buffer", "0"])), without);
    assert!(without[0].get("write_buffer").is_none());
    let asked = with(&["--write-buffer", "256KiB", "--write-buffer-policy", "block-lru"]);
    let document = json_of(&quick(&asked));
    let told = serde_json::json!({"pages": 64, "bytes": 262_144, "policy": "block-lru"});
    assert_eq!(document["settings"][1]["write_buffer"], told);
    for (result, without) in document["results"].as_array().unwrap().iter().zip(&without) {
        let (buffer, number) = (&result["write_buffer"], |value: &Value| value.as_u64().unwrap());
        assert_eq!((&buffer["policy"], number(&buffer["pages"])), (&"block-lru".into(), 64));
        let left = ["evicted", "flushed", "written_through", "at_end"].map(|why| number(&buffer[why]));
        assert_eq!(number(&buffer["programmed"]), left.iter().sum::<u64>());
        assert_eq!(buffer["programmed"], result["flash"]["host"]["programs"]);
        assert!(number(&buffer["programmed"]) < 18_000 && number(&buffer["completing_reads"]) > 1000, "{buffer}");
        assert_eq!(result["host"]["writes"], without["host"]["writes"]);
        let ram = |result: &Value| number(&result["ram_bytes"]["total"]);
        assert_eq!(ram(result) - ram(without), 64 * (4096 + 13));
    }
    assert_eq!(results_of(&with(&["--write-buffer", "64pages", "--write-buffer-policy", "bplru"])), {
        let mut results = document["results"].as_array().unwrap().clone();
        results.iter_mut().for_each(|result| drop(result.as_object_mut().unwrap().remove("simulation")));
        results
    });
    let text = output_of(&quick(&["--write-buffer", "64pages"]));
    assert_plain(&text);
    for part in ["\nWrite buffer\n", "20 000 pages that the host wrote", "256 KiB (64 pages)", "left for room (lru)"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

fn check_purposes(result: &Value) {
    const PURPOSES: [&str; 11] = [
        "host",
        "gc",
        "translation",
        "translation_gc",
        "validity",
        "validity_query",
        "validity_gc",
        "checkpoint",
        "recovery",
        "wear",
        "refresh",
    ];
    let wa = &result["write_amplification"];
    let mut sum = 0.0;
    for purpose in PURPOSES {
        for field in ["reads", "spare_reads", "programs", "erases"] {
            assert!(result["flash"][purpose][field].is_u64(), "flash.{purpose}.{field}");
        }
        sum += wa["by_purpose"][purpose]["programs"].as_f64().unwrap();
    }
    assert!((sum - wa["programs_per_write"].as_f64().unwrap()).abs() < 1e-9);
    assert!(wa["paper"].as_f64().unwrap() >= wa["programs_per_write"].as_f64().unwrap());
    assert!(wa["delta"].as_f64().unwrap() > 0.0);
}

#[test]
fn timed_runs_have_latencies() {
    let workload = ["--workload", "uniform:reads=50", "--timing", "queued", "--queue-depth", "8"];
    let arguments: Vec<&str> =
        ["compare", "--ftl", "page", "--capacity", "256MiB", "--writes", "5k"].into_iter().chain(workload).collect();
    let document = json_of(&[&arguments[..], &["--json"]].concat());
    for kind in ["read", "write"] {
        let latency = &document["results"][0]["latency_us"][kind];
        let at = |field: &str| latency[field].as_f64().unwrap();
        assert!(at("mean") > 0.0 && at("p50") <= at("p99") && at("p99") <= at("p999") && at("p999") <= at("max"));
    }
    let text = output_of(&arguments);
    assert_plain(&text);
    assert!(text.contains("p99.9") && text.contains(" ms"), "{text}");
}

#[test]
fn open_loops_and_idle_collection_run() {
    let document = json_of(&[
        "compare",
        "--ftl",
        "page",
        "--capacity",
        "256MiB",
        "--writes",
        "5k",
        "--workload",
        "uniform:rate=2000",
        "--timing",
        "queued",
        "--open-loop",
        "--time-scale",
        "2",
        "--gc",
        "idle",
        "--json",
    ]);
    assert!(document["results"][0]["latency_us"]["write"]["count"].as_u64().unwrap() > 0);
}

#[test]
fn virtual_time_ends_with_an_error() {
    let timed = ["compare", "--ftl", "page", "--capacity", "256MiB", "--writes", "2k", "--timing", "queued"];
    let slow = ["--workload", "uniform:rate=0.01", "--open-loop", "--time-scale", "1e6", "--precondition", "none"];
    let ran = openftl(&[&timed[..], &slow].concat());
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("arrival times") && ran.err.contains("years"), "{}", ran.err);
}

fn without_clock(mut document: Value) -> Value {
    for result in document["results"].as_array_mut().unwrap() {
        result["simulation"] = Value::Null;
    }
    document
}

#[test]
fn the_same_seed_gives_the_same_result_and_another_does_not() {
    let run = |seed| without_clock(json_of(&quick(&["--workload", "zipf:reads=20,trims=2", "--json", "--seed", seed])));
    assert_eq!(run("7")["results"], run("7")["results"]);
    assert_ne!(run("7")["results"], run("8")["results"]);
}

#[test]
fn delta_changes_only_the_form_that_counts_reads() {
    let of = |delta| json_of(&quick(&["--json", "--delta", delta]))["results"][0]["write_amplification"].clone();
    let (ten, five) = (of("10"), of("5"));
    assert_eq!(ten["programs_per_write"], five["programs_per_write"]);
    assert_eq!(five["delta"], 5.0);
    assert!(five["paper"].as_f64() > ten["paper"].as_f64());
}

#[test]
fn options_of_ftls_and_policies_reach_them() {
    let ram = |more: &[&str]| {
        json_of(&[&quick(&["--ftl", "dftl", "--json"]), more].concat())["results"][0]["ram_bytes"]["total"].as_u64()
    };
    assert!(ram(&["--cache", "256KiB"]) > ram(&["--cache", "4KiB"]));
    assert!(ram(&["--cache", "256KiB"]) > ram(&["--cache", "512KiB", "--cache-ways", "16"]));
    let map = |order: &[&str]| {
        let document = json_of(&[&quick(&["--ftl", "dftl", "--json"]), order].concat());
        document["results"][0]["write_amplification"]["by_purpose"]["translation"]["programs"].as_f64().unwrap()
    };
    // Fewer entries on probation are fewer dirty ones that gather.
    assert!(map(&[]) < map(&["--segmented-lru=50"]) && map(&["--segmented-lru=50"]) < map(&["--segmented-lru"]));
    let gc = |victim| {
        let document = json_of(&quick(&["--ftl", "page", "--victim", victim, "--json"]));
        document["results"][0]["write_amplification"]["by_purpose"]["gc"]["programs"].as_f64().unwrap()
    };
    assert!(gc("fifo") > gc("greedy"));
    output_of(&quick(&["--placement", "single", "--gecko-t", "4", "--gecko-s", "2", "--gecko-two-way"]));
    output_of(&quick(&["--precondition", "none"]));
    output_of(&quick(&["--precondition", "fill"]));
    output_of(&quick(&["--precondition", "aged"]));
}

#[test]
fn ftls_that_do_not_take_an_option_are_named_and_run_without_it() {
    let options =
        ["--cache", "4KiB", "--segmented-lru", "--level-wear=2", "--gecko-t", "4", "--validity", "flash-bitmap"];
    let some = [&quick(&["--ftl", "page,dftl,bast,gecko"]), &options[..6]].concat();
    let text = output_of(&some);
    assert_plain(&text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in [
        "--cache, --segmented-lru mean nothing to page, bast, which run without",
        "--level-wear means nothing to bast, which runs without",
        "--gecko-t means nothing to page, dftl, bast, which run without",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let without = without_clock(json_of(&quick(&["--ftl", "bast", "--json"])));
    let mixed = json_of(&[&quick(&["--ftl", "page,bast", "--json", "--level-wear=2"]), &options[6..]].concat());
    let expected = serde_json::json!([{"options": ["--validity", "--level-wear"], "ftls": ["bast"]}]);
    assert_eq!((&mixed["not_taken"], &without["not_taken"]), (&expected, &serde_json::json!([])));
    assert_eq!(without_clock(mixed)["results"][1], without["results"][0]);
}

#[test]
fn a_trace_sizes_its_device_and_guesses_aloud() {
    let folder = folder();
    let path = small_trace(folder.path());
    let ran = openftl(&["compare", path.to_str().unwrap(), "--repeat", "3"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("note: ") && ran.err.contains("guessed"), "{}", ran.err);
    assert!(ran.err.contains("touches 64 pages"), "{}", ran.err);
    assert_plain(&ran.out);
    let document = json_of(&["compare", path.to_str().unwrap(), "--ftl", "page", "--writes", "5k", "--json"]);
    assert_eq!(document["results"][0]["host"]["writes"], 5_000);
    assert!(!document["notes"].as_array().unwrap().is_empty());
}

#[test]
fn a_workload_without_writes_says_so() {
    let ran = openftl(&quick(&["--workload", "uniform:reads=100", "--ftl", "page", "--precondition", "fill"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("wrote nothing"), "{}", ran.err);
}

#[test]
fn the_html_report_is_one_whole_file() {
    let folder = folder();
    let path = folder.path().join("report.html");
    output_of(&quick(&["--html", path.to_str().unwrap()]));
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(page.matches("<svg").count() >= 5 && !page.contains("<script") && !page.contains("http"));
}

#[test]
fn a_device_can_come_from_a_file() {
    let folder = folder();
    let path = folder.path().join("mine.toml");
    let text = output_of(&["list", "devices", "--toml", "small"]).replace("name = \"small\"", "name = \"mine\"");
    std::fs::write(&path, &text).unwrap();
    let document = json_of(&["compare", "--device", path.to_str().unwrap(), "--ftl", "page", "--json"]);
    assert_eq!(document["results"][0]["device"], "mine");
}

#[test]
fn a_file_of_options_does_the_run_again() {
    let folder = folder();
    let file = folder.path().join("run.toml");
    let file = file.to_str().unwrap();
    let varied = ["--ftl", "dftl,gecko", "--cache", "8KiB", "--level-wear", "--workload", "zipf:theta=0.9", "--json"];
    let first = results_of(&[&varied[..], &["--write-config", file]].concat());
    let again = json_of(&["compare", "--config", file, "--json"]);
    assert_eq!(first, results_in(again.clone()));
    assert!(first != results_in(json_of(&["compare", "--config", file, "--cache", "16KiB", "--json"])));
    // The command says all that the file does.
    let command = again["command"].as_str().unwrap();
    assert!(command.contains("--cache=8KiB") && !command.contains("config"), "{command}");
    let ran = openftl(&["compare", "--config", "/there/is/none.toml"]);
    assert!(ran.code == 1 && ran.err.contains("cannot read /there/is/none.toml"), "{}", ran.err);
}

/// The fields of a document by their type, as docs/JSON.md writes them.
fn fields(value: &Value, path: &str, parent: &str, found: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let names = match parent {
        "flash" | "by_purpose" | "reads_by_purpose" => Some("{purpose}"),
        "ram_bytes" => Some("{structure}"),
        "gauges" => Some("{gauge}"),
        "latency_us" => Some("{kind}"),
        _ => None,
    };
    let kind = match value {
        Value::Object(object) => {
            for (key, value) in object {
                let name = names.filter(|_| key != "total").unwrap_or(key);
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                fields(value, &path, if names.is_some() { "" } else { key }, found);
            }
            return;
        }
        Value::Array(items) => {
            if items.is_empty() {
                found.entry(format!("{path}[]")).or_default();
            }
            return items.iter().for_each(|item| fields(item, &format!("{path}[]"), "", found));
        }
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "text",
    };
    found.entry(path.to_owned()).or_default().insert(kind);
}

#[test]
fn every_field_is_published_and_every_published_field_is_printed() {
    let published: BTreeMap<&str, BTreeSet<&str>> = include_str!("../../../../docs/JSON.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(field, rest)| (field, rest.split(" | ").next().unwrap().split(", ").collect()))
        .collect();
    let folder = folder();
    let device = folder.path().join("types.toml");
    let types = output_of(&["list", "devices", "--toml", "demo"])
        .replace("bits_per_cell = 1", "bits_per_cell = 2")
        .replace("read_by_type_ns = []", "read_by_type_ns = [90000, 110000]")
        .replace("program_by_type_ns = []", "program_by_type_ns = [900000, 1100000]");
    std::fs::write(&device, types).unwrap();
    let with_types =
        format!("--ftl page --capacity 256MiB --writes 5k --precondition fill --device {}", device.display());
    let mut found = BTreeMap::new();
    for options in [
        "--ftl page,gecko,ftrm --device ftrm-qlc --capacity 1GiB --writes 30k --precondition fill",
        "--ftl janus,reconfigurable,page --groups 4:2 --device janus-slc --capacity 64MiB --writes 20k --timing queued --suspend 5us",
        "--ftl page,dftl,asa --timing queued --capacity 1GiB --writes 20k --precondition fill --write-buffer 1MiB --level-wear \
         --workload zipf:theta=0.9,reads=30,trims=2,flush=100",
        "sample:git --ftl page --capacity 64MiB --map fold",
        &with_types,
    ] {
        let words: Vec<&str> = options.split_whitespace().collect();
        fields(&json_of(&[&["compare", "--json"], &words[..]].concat()), "", "", &mut found);
    }
    // Of an empty list of objects nothing is known.
    found.retain(|field, kinds| !kinds.is_empty() || published.contains_key(field.as_str()));
    for (field, kinds) in &found {
        let published =
            published.get(field.as_str()).unwrap_or_else(|| panic!("docs/JSON.md lacks {field}: {kinds:?}"));
        assert!(kinds.is_subset(published), "{field} is {kinds:?}, published as {published:?}");
    }
    let never: Vec<&str> = published.keys().copied().filter(|field| !found.contains_key(*field)).collect();
    assert!(never.is_empty(), "docs/JSON.md has what no run printed: {never:?}");
}

#[test]
fn timelines_can_be_left_out() {
    let with = json_of(&quick(&["--ftl", "page", "--json"]));
    let without = json_of(&quick(&["--ftl", "page", "--json", "--no-timeline"]));
    assert!(!with["results"][0]["timeline"].as_array().unwrap().is_empty());
    assert_eq!(without["results"][0]["timeline"].as_array().unwrap().len(), 0);
    assert_eq!(with["results"][0]["write_amplification"], without["results"][0]["write_amplification"]);
}
