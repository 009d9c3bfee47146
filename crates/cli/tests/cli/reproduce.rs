//! `openftl reproduce` and `openftl model`.

use super::common::{folder, json_of, openftl, output_of};
use std::fs;
use std::path::Path;

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
    let cases: [(&[&str], &[&str]); 11] = [
        (&["reproduce", "gecko/fig99"], &["no figure `gecko/fig99`", "reproduce list"]),
        (&["reproduce", "gecko/fig1", "gecko/fig1"], &["twice"]),
        (
            &["reproduce", "gecko/fig9", "--traces", "no-folder"],
            &["--traces means nothing to gecko/fig9", "janus/fig5"],
        ),
        (&["reproduce", "list", "gecko/fig1"], &["stands alone"]),
        (&["reproduce", "gecko/fig1", "--scale", "2"], &["--scale", "1/256"]),
        (&["model", "--logical-ratio", "1"], &["--logical-ratio"]),
        (&["model", "--cache", "4"], &["8 B"]),
        (&["model", "--capacity", "4KiB"], &["no block"]),
        (&["model", "--ftl", "bast"], &["no formulas for `bast`", "gecko"]),
        (&["model", "--read-us", "0"], &["--read-us"]),
        (&["model", "--ftl", "dftl,gecko", "--dirty-ratio", "0.2"], &["means nothing to dftl, gecko", "lazy, ib-ftl;"]),
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
