//! `openftl reproduce` and `openftl model`.

use super::common::{folder, json_of, openftl, output_of};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn made(figure: &str, out: &Path) -> serde_json::Value {
    json_of(&["reproduce", figure, "--scale", "1/4096", "--out", out.to_str().unwrap(), "--json"])
}

#[test]
fn a_figure_writes_its_files() {
    let folder = folder();
    let out = folder.path().join("made/here");
    let document = made("gecko/fig9", &out);
    let figure = &document["figures"][0];
    let files: Vec<&str> = figure["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    for extension in ["csv", "svg", "html"] {
        assert!(files.iter().any(|file| file.ends_with(extension)), "{extension} in {files:?}");
    }
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        assert!(!text.contains("NaN"), "{file}");
        match Path::new(file).extension().unwrap().to_str().unwrap() {
            "csv" => csv_is_whole(&text),
            "svg" => assert!(text.starts_with("<svg xmlns") && text.ends_with("</svg>\n")),
            _ => assert!(text.starts_with("<!doctype html>") && text.contains("Claims")),
        }
    }
    let claims = figure["outcome"]["verdicts"].as_array().unwrap();
    let summary = fs::read_to_string(out.join("verdicts.md")).unwrap();
    assert_eq!(summary.lines().filter(|line| line.starts_with("| gecko/fig9 |")).count(), claims.len());
}

/// Every line has as many columns as the header; cells of these tables hold no line breaks.
fn csv_is_whole(text: &str) {
    let columns = |line: &str| {
        let mut quoted = false;
        1 + line
            .chars()
            .filter(|c| {
                quoted ^= *c == '"';
                *c == ',' && !quoted
            })
            .count()
    };
    let mut lines = text.lines();
    let header = columns(lines.next().unwrap());
    assert!(header > 1);
    let rows: Vec<&str> = lines.collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| columns(row) == header), "{text}");
}

/// Every file in a folder, folders apart, with its contents.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Runs, and how many of them were taken, of each figure.
fn taken(document: &serde_json::Value) -> Vec<(u64, u64)> {
    let figures = document["figures"].as_array().unwrap().iter();
    figures.map(|figure| (figure["runs"].as_u64().unwrap(), figure["taken"].as_u64().unwrap())).collect()
}

/// Without the numbers of runs that were taken.
fn without_taken(mut document: serde_json::Value) -> serde_json::Value {
    for figure in document["figures"].as_array_mut().unwrap() {
        figure["taken"] = 0.into();
    }
    document
}

#[test]
fn finished_runs_are_taken_and_not_done_again() {
    let folder = folder();
    let out = folder.path();
    let runs = out.join("runs");
    let first = made("gecko/fig12", out);
    let [(number, 0)] = taken(&first)[..] else { panic!("{first}") };
    let (figures, kept) = (contents(out), contents(&runs));
    assert_eq!(kept.len() as u64, number);
    for (path, text) in &kept {
        assert_eq!(path.extension().unwrap(), "json");
        let file: serde_json::Value = serde_json::from_slice(text).unwrap();
        assert!(file["settings"].as_str().unwrap().starts_with("RunSpec {"), "{file}");
    }

    let second = made("gecko/fig12", out);
    assert_eq!(taken(&second), [(number, number)]);
    assert_eq!(without_taken(second), first);
    // Files of runs hold wall-clock times: done again, they would differ.
    assert!(contents(out) == figures && contents(&runs) == kept);

    let (path, text) = kept.first_key_value().unwrap();
    fs::write(path, &text[..text.len() / 2]).unwrap();
    assert_eq!(taken(&made("gecko/fig12", out)), [(number, number - 1)]);
    let mended = contents(&runs);
    assert!(contents(out) == figures && mended.keys().eq(kept.keys()));
    let differing: Vec<_> = kept.iter().filter(|(path, text)| mended[*path] != **text).map(|(path, _)| path).collect();
    assert_eq!(differing, [path]);

    let arguments = ["reproduce", "gecko/fig12", "--scale", "1/4096", "--out", out.to_str().unwrap()];
    let text = output_of(&arguments);
    let says = format!("{number} of {number} runs were taken from {},", runs.display());
    assert!(text.contains(&says), "{text}");
    let text = output_of(&[&arguments[..], &["--fresh"]].concat());
    assert!(!text.contains("taken"), "{text}");
    let anew = contents(&runs);
    assert!(contents(out) == figures && anew.keys().eq(kept.keys()));
    assert!(anew.iter().all(|(path, text)| mended[path] != *text));
}

#[test]
fn calls_share_the_runs_of_a_figure() {
    let folder = folder();
    let out = folder.path();
    let arguments = ["reproduce", "gecko/fig13", "--scale", "1/4096", "--out", out.to_str().unwrap()];
    let some = |series: &str| json_of(&[&arguments[..], &["--only", series, "--json"]].concat());
    let counts =
        |document: &serde_json::Value| (document["runs"].as_u64().unwrap(), document["taken"].as_u64().unwrap());
    assert_eq!(counts(&some("gecko,dftl")), (2, 0));
    assert_eq!(counts(&some("gecko,lazy")), (2, 1));
    assert!(contents(out).is_empty(), "no figure is made of some of its runs");
    let text = output_of(&[&arguments[..], &["--only", "uftl"]].concat());
    assert!(text.contains("runs done: 1, there before: 0"), "{text}");
    assert_eq!(taken(&made("gecko/fig13", out)), [(7, 4)]);
    let ran = openftl(&[&arguments[..], &["--only", "geko"]].concat());
    assert!(
        ran.code == 2 && ran.err.contains("`geko`") && ran.err.contains("`gecko`") && ran.err.contains("`ib-ftl`"),
        "{}",
        ran.err
    );
}

#[test]
fn another_seed_takes_nothing_and_figures_share_runs() {
    let folder = folder();
    let out = folder.path().to_str().unwrap();
    let arguments = ["reproduce", "janus/fig8", "janus/fig9", "--scale", "1/4096", "--out", out, "--json"];
    // Figure 8 is of Janus-FTL's run in Figure 9.
    assert_eq!(taken(&json_of(&arguments)), [(1, 0), (6, 1)]);
    assert_eq!(taken(&json_of(&[&arguments[..], &["--fresh"]].concat())), [(1, 0), (6, 1)]);
    assert_eq!(taken(&json_of(&[&arguments[..], &["--seed", "2"]].concat())), [(1, 0), (6, 1)]);
    assert_eq!(taken(&json_of(&arguments)), [(1, 1), (6, 6)]);
    assert_eq!(contents(&folder.path().join("runs")).len(), 12);
}

#[test]
fn runs_of_recorded_traces_are_done_each_time() {
    let folder = folder();
    let trace: String = (0..8000).map(|i| format!("{i}.5 0 {} 8 0\n", i * 37 % 8000 * 8)).collect();
    fs::write(folder.path().join("fin1.trace"), trace).unwrap();
    let (traces, out) = (folder.path().to_str().unwrap(), folder.path().join("out"));
    let arguments =
        ["reproduce", "janus/fig5", "--scale", "1/4096", "--out", out.to_str().unwrap(), "--traces", traces, "--json"];
    for _ in 0..2 {
        let document = json_of(&arguments);
        assert!(document["figures"][0]["outcome"]["setup"].to_string().contains("recorded trace"), "{document}");
        assert!(matches!(taken(&document)[..], [(1.., 0)]), "{document}");
        assert!(contents(&out.join("runs")).is_empty());
    }
}

#[test]
fn a_folder_that_takes_no_runs_is_an_error_before_any() {
    let folder = folder();
    let path = folder.path().join("runs");
    fs::write(&path, "a file").unwrap();
    let ran = openftl(&["reproduce", "gecko/fig9", "--scale", "1/4096", "--out", folder.path().to_str().unwrap()]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains(path.to_str().unwrap()), "{}", ran.err);
    assert_eq!(contents(folder.path()).len(), 1, "no figure was written");
}

#[test]
fn text_fits_100_columns_and_says_what_holds() {
    let folder = folder();
    let out = folder.path().to_str().unwrap();
    let text = output_of(&["reproduce", "gecko/fig1", "--scale", "1/4096", "--out", out]);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("HOLDS") && text.contains("claims hold"), "{text}");
}

#[test]
fn figures_are_listed() {
    let text = output_of(&["reproduce", "list"]);
    for row in json_of(&["reproduce", "list", "--json"]).as_array().unwrap() {
        assert!(text.contains(row["name"].as_str().unwrap()));
    }
}

#[test]
fn wrong_arguments_are_explained() {
    let cases: [(&[&str], &[&str]); 19] = [
        (&["reproduce", "gecko/fig99"], &["no figure `gecko/fig99`", "reproduce list"]),
        (&["reproduce", "gecko/fig1", "gecko/fig1"], &["twice"]),
        (
            &["reproduce", "gecko/fig9", "--traces", "no-folder"],
            &["--traces means nothing to gecko/fig9", "janus/fig5"],
        ),
        (
            &["reproduce", "gecko/fig9", "lftl/table1", "--real-time"],
            &["--real-time means nothing to gecko/fig9", "lftl/table2"],
        ),
        (&["reproduce", "list", "gecko/fig1"], &["stands alone"]),
        (&["reproduce", "gecko/fig1", "--scale", "2"], &["--scale", "1/256"]),
        (&["model", "--logical-ratio", "1"], &["--logical-ratio"]),
        (&["model", "--cache", "4"], &["8 B"]),
        (&["model", "--capacity", "4KiB"], &["no block"]),
        (&["model", "--ftl", "bast"], &["no formulas for `bast`", "gecko"]),
        (&["model", "--read-us", "0"], &["--read-us"]),
        (&["model", "--ftl", "dftl,gecko", "--dirty-ratio", "0.2"], &["means nothing to dftl, gecko", "lazy, ib-ftl;"]),
        (&["model", "--rates", "zip"], &["--rates zip", "zipf"]),
        (&["model", "--rates", "sequential"], &["--rates sequential", "uniform, zipf or hotcold"]),
        (&["model", "--rates", "zipf:footprint=50"], &["without size, trims and footprint"]),
        (&["model", "--rates", "zipf", "--over-provisioning", "0"], &["--over-provisioning 0", "percent"]),
        (&["model", "--rates", "zipf", "--pages", "0"], &["--pages", "at least 1"]),
        (&["model", "--rates", "zipf", "--cache", "4MiB"], &["--rates", "--cache"]),
        (&["model", "--pages", "100"], &["--rates"]),
    ];
    for (arguments, parts) in cases {
        let ran = openftl(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.err);
        assert!(parts.iter().all(|part| ran.err.contains(part)), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn formulas_are_those_of_the_paper() {
    let model = json_of(&["model", "--json"]);
    assert_eq!(model["translation_pages"], 367_002);
    assert_eq!(model["device"]["blocks"], 1 << 22);
    let mib = |name: &str| {
        let all = model["structures"].as_array().unwrap();
        let found = all.iter().find(|structure| structure["name"].as_str().unwrap().contains(name)).unwrap();
        found["bytes"].as_f64().unwrap() / f64::from(1 << 20)
    };
    assert!((mib("PVB") - 64.0).abs() < 1e-9 && (mib("BVC") - 8.0).abs() < 1e-9);
    assert!((mib("translation table") - 1433.6).abs() < 0.01);
    let text = output_of(&["model"]);
    for part in ["2 TiB", "pvb 64 MiB", "12.6 s", "36.7 s"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn a_larger_device_has_larger_structures() {
    let total = |capacity: &str| {
        let model = json_of(&["model", "--capacity", capacity, "--ftl", "lazy", "--json"]);
        model["ftls"][0]["ram_bytes"].as_f64().unwrap()
    };
    assert!(total("4TiB") > 1.9 * total("2TiB"));
}

#[test]
fn separate_logs_program_what_the_reference_says() {
    let spare = ((1 << 21) as f64 / 1_953_125.0 - 1.0) * 100.0;
    let percents = format!("{spare},28");
    let arguments = ["model", "--rates", "zipf:theta=0.99", "--rates", "hotcold", "--over-provisioning", &percents];
    let document = json_of(&[&arguments[..], &["--json"]].concat());
    let rows = document["results"].as_array().unwrap();
    let both = |row: &serde_json::Value| {
        ["one_log", "separate_logs"].map(|name| format!("{:.2}", row[name].as_f64().unwrap())).join(" ")
    };
    assert_eq!(rows.iter().map(both).collect::<Vec<_>>(), ["11.38 2.70", "3.77 1.36", "8.50 3.14", "3.30 1.41"]);
    let text = output_of(&arguments);
    assert!(text.contains("11.38") && text.contains("1 953 125 logical pages"), "{text}");
}
