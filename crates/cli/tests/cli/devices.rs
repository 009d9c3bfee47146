//! What a device file says that dies can do beside something else.

use crate::common::{folder, json_of, openftl, output_of};
use std::fs;

/// A device of eight planes on four dies, whose bus takes a fifth of a program's time.
fn device_file(changes: &[(&str, &str)]) -> String {
    let small = [
        ("name = \"demo\"", "name = \"planes\""),
        ("channels = 8", "channels = 1"),
        ("planes_per_die = 1", "planes_per_die = 2"),
        ("blocks = 2048", "blocks = 512"),
        ("pages_per_block = 128", "pages_per_block = 32"),
        ("channel_bytes_per_us = 400", "channel_bytes_per_us = 20"),
    ];
    let demo = output_of(&["list", "devices", "--toml", "demo"]);
    small.iter().chain(changes).fold(demo, |text, (from, to)| {
        assert!(text.contains(from), "a device file says no `{from}`");
        text.replace(from, to)
    })
}

fn requests_per_s(device: &str, more: &[&str]) -> f64 {
    let timed = ["compare", "--ftl", "page", "--timing", "queued", "--queue-depth", "64", "--json", "--device", device];
    let run = ["--writes", "6000", "--precondition", "fill", "--workload", "uniform:reads=30"];
    json_of(&[&timed[..], &run, more].concat())["results"][0]["throughput"]["iops"].as_f64().unwrap()
}

#[test]
fn planes_and_caches_of_dies_make_a_device_faster() {
    let folder = folder();
    let speed = |name: &str, changes: &[(&str, &str)], more: &[&str]| {
        let path = folder.path().join(name);
        fs::write(&path, device_file(changes)).unwrap();
        requests_per_s(path.to_str().unwrap(), more)
    };
    let fast_bus = ("channel_bytes_per_us = 20", "channel_bytes_per_us = 400");
    let plain = speed("plain.toml", &[fast_bus], &[]);
    let together = ("multi_plane = false", "multi_plane = true");
    let planes = speed("planes.toml", &[fast_bus, together], &["--lanes", "8"]);
    assert!(planes > 1.15 * plain, "{planes} requests/s with two planes together, {plain} without");
    let alone = speed("alone.toml", &[fast_bus], &["--lanes", "8"]);
    assert!(alone < 1.1 * plain, "{alone} requests/s with a lane a plane, {plain} with a lane a die");
    let slow = speed("slow.toml", &[], &[]);
    let both = [("cache_programs = false", "cache_programs = true"), ("cache_reads = false", "cache_reads = true")];
    let cached = speed("cached.toml", &both, &[]);
    assert!(cached > 1.01 * slow, "{cached} requests/s with caches, {slow} without");
    let queues =
        speed("queues.toml", &[fast_bus, ("write_queues_per_channel = 0", "write_queues_per_channel = 1")], &[]);
    assert!(queues < 0.9 * plain, "{queues} requests/s with one write queue, {plain} with one a die");
}

#[test]
fn lanes_are_at_most_dies_or_all_planes() {
    let lanes = |lanes| openftl(&["compare", "--device", "modern-tlc", "--capacity", "8GiB", "--lanes", lanes]);
    let refused = lanes("33");
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("more than the 32 dies") && refused.err.contains("for 128, one for each plane"));
}

/// Cells of two bits, of which the first page is programmed in so many and the second in so many
/// nanoseconds.
fn page_types(first: &str, second: &str) -> String {
    let by_type = format!("program_by_type_ns = [{first}, {second}]");
    device_file(&[("program_by_type_ns = []", &by_type), ("bits_per_cell = 1", "bits_per_cell = 2")])
}

#[test]
fn a_program_takes_the_time_of_its_page_type() {
    let folder = folder();
    let longest_us = |name: &str, file: &str| {
        let path = folder.path().join(name);
        fs::write(&path, file).unwrap();
        let timed = ["compare", "--ftl", "page", "--timing", "queued", "--queue-depth", "1", "--json", "--device"];
        let run = [path.to_str().unwrap(), "--writes", "2000", "--precondition", "none"];
        let write = json_of(&[&timed[..], &run].concat())["results"][0]["latency_us"]["write"].clone();
        write["max"].as_f64().unwrap()
    };
    let alike = longest_us("alike.toml", &device_file(&[]));
    let apart = longest_us("apart.toml", &page_types("400_000", "1_600_000"));
    assert!((apart - alike - 600.0).abs() < 1.0, "the longest write takes {apart} us, {alike} with pages all alike");
}

#[test]
fn times_by_page_type_that_do_not_fit_the_device_are_refused() {
    let folder = folder();
    for (file, told) in [
        (page_types("400_000", "1_500_000"), "the mean of program_by_type_ns is 950000 ns"),
        (page_types("400_000", "1_000_000, 1_600_000"), "cells of 2 bits"),
        (page_types("1, 1, 1, 1, 1, 1, 1, 1", "1"), "9 page types are more than the 8"),
        (
            page_types("0", "1_500_000_000_000").replace("program_ns = 1000000\n", "program_ns = 750_000_000_000\n"),
            "program_by_type_ns of device planes is 1500000000000 ns",
        ),
    ] {
        let path = folder.path().join("device.toml");
        fs::write(&path, &file).unwrap();
        let refused = openftl(&["compare", "--device", path.to_str().unwrap()]);
        assert_eq!(refused.code, 1, "{}", refused.err);
        let names_device = ["device.toml", "device planes"].iter().any(|name| refused.err.contains(name));
        assert!(refused.err.contains(told) && names_device, "{}", refused.err);
    }
}
