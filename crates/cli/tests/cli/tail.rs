//! `openftl tail`: latency at shares of the sustained rate, with and without collection.

use super::common::{folder, json_of, openftl, output_of};

const QUICK: [&str; 10] =
    ["--capacity", "64MiB", "--writes", "6k", "--load", "30,70", "--warm-up", "500", "--lanes", "1"];

fn tail<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["tail"], options, &QUICK[..]].concat()
}

#[test]
fn latencies_are_told_by_load_and_as_multiples_of_those_without_collection() {
    let folder = folder();
    let page = folder.path().join("tail.html");
    let options = ["--ftl", "page,gecko", "--workload", "uniform:reads=20", "--html", page.to_str().unwrap()];
    let text = output_of(&tail(&options));
    for part in
        ["1024 clients", "Latency of writes by load", "Latency of reads by load", "page at 70%: p99.9 of writes"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<figure>").count(), 4, "p99.9 and max of writes and of reads");
    let document = json_of(&tail(&[&options[..4], &["--json"]].concat()));
    assert_eq!(document["schema"], "openftl-tail/1");
    for of_ftl in document["results"].as_array().unwrap() {
        let sustained = of_ftl["sustained_per_s"].as_f64().unwrap();
        let rates: Vec<f64> =
            of_ftl["closed_loops"].as_array().unwrap().iter().map(|closed| closed["per_s"].as_f64().unwrap()).collect();
        let bound = rates.iter().copied().fold(0.0, f64::max);
        let tried = of_ftl["tried"].as_array().unwrap();
        let kept = tried.iter().filter(|tried| tried["keeps_up"] == true).map(|tried| tried["per_s"].as_f64().unwrap());
        assert!((kept.fold(0.0, f64::max) - sustained).abs() < 1e-9 && sustained <= bound, "{of_ftl}");
        assert!(rates.len() == 3 && sustained > 0.0, "{rates:?} {sustained}");
        let loads = of_ftl["loads"].as_array().unwrap();
        assert_eq!(loads.len(), 2);
        for (point, load) in loads.iter().zip([0.3, 0.7]) {
            assert!((point["per_s"].as_f64().unwrap() / sustained - load).abs() < 1e-9);
            for kind in ["write", "read"] {
                let at = |which: &str, figure: &str| point[which][kind][figure].as_f64().unwrap();
                let (with, without) = ("latency_us", "latency_without_collection_us");
                assert!(at(with, "p50") <= at(with, "p999") && at(with, "p999") <= at(with, "max"), "{point}");
                let times = at("times_without_collection", "p999");
                assert!((times - at(with, "p999") / at(without, "p999")).abs() < 1e-9);
            }
            let writes = point["times_without_collection"]["write"]["p999"].as_f64().unwrap();
            assert!(writes > 1.5, "a collector lengthens the tail: {writes}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_whatever_the_threads() {
    let options = ["--ftl", "page", "--json"];
    let results = |more: &[&str]| json_of(&tail(&[&options[..], more].concat()))["results"].clone();
    let first = results(&["--jobs", "1"]);
    assert_eq!(first, results(&["--jobs", "2"]));
    assert_ne!(first, results(&["--seed", "2"]));
}

#[test]
fn what_cannot_be_done_is_refused_with_its_name() {
    let cases: [(&[&str], &str); 5] = [
        (&["tail", "--load", "0"], "--load"),
        (&["tail", "--load", "100"], "--load"),
        (&["tail", "--load", "70,30,70"], "--load names 70 twice"),
        (&["tail", "--placement", "fk"], "--placement fk"),
        (&["tail", "--capacity", "256MiB", "--writes", "1k", "--warm-up", "2k", "--load", "50"], "--warm-up"),
    ];
    for (command, said) in cases {
        let ran = openftl(command);
        assert!(ran.code == 2 && ran.err.contains(said), "{command:?}: {} {}", ran.code, ran.err);
    }
}

/// Of this trace two requests in five are flushes and trims.
#[test]
fn a_rate_counts_requests_of_every_kind() {
    let arguments =
        ["tail", "sample:sqlite", "--ftl", "page", "--load", "70", "--limit", "3000", "--lanes", "1", "--json"];
    let document = json_of(&arguments);
    assert!(document["results"][0]["sustained_per_s"].as_f64().unwrap() > 0.0, "{document}");
}
