//! Wrong inputs: the exit code says whose turn it is, the message what was wrong and what to do.

use super::common::{folder, openftl, openftl_in, output_of};

/// Arguments, exit code, and what the message has to say.
type Case = (&'static [&'static str], i32, &'static [&'static str]);

const CASES: &[Case] = &[
    (&["compare", "--ftl", "gekco"], 2, &["no FTL `gekco`", "did you mean `gecko`", "page, dftl"]),
    (&["compare", "--ftl", "page,page"], 2, &["page twice"]),
    (&["compare", "--ftl", ""], 2, &["no FTL ``"]),
    (&["compare", "--workload", "unifrom"], 2, &["no workload `unifrom`", "did you mean `uniform`"]),
    (&["compare", "--workload", "zipf:theta=-1"], 2, &["theta", "-1"]),
    (&["compare", "--workload", "zipf:tehta=1"], 2, &["tehta", "theta"]),
    (&["compare", "--workload", "uniform:size=1TiB"], 2, &["does not fit", "size"]),
    (&["compare", "--device", "modern-tcl"], 2, &["no device profile `modern-tcl`", "did you mean `modern-tlc`"]),
    (&["compare", "--device", "absent.toml"], 1, &["absent.toml", "list devices --toml"]),
    (&["compare", "--device", "wrong.toml"], 1, &["wrong.toml", "endurance", "unknown field"]),
    (&["compare", "--device", "empty.toml"], 1, &["empty.toml is empty", "list devices --toml"]),
    (&["compare", "--device", "slow.toml"], 1, &["program_ns", "slow", "2000000000000 ns", "1000 s"]),
    (&["compare", "--capacity", "12 parsecs"], 2, &["--capacity", "12 parsecs", "8GiB"]),
    (&["compare", "--capacity", "1KiB"], 2, &["--capacity", "at least"]),
    (&["compare", "--capacity", "900PiB"], 2, &["--capacity", "32-bit"]),
    (&["compare", "--logical-ratio", "1.5"], 2, &["--logical-ratio 1.5", "between 0 and 1"]),
    (&["compare", "--logical-ratio", "0.999"], 2, &["cannot be built on this device"]),
    (&["compare", "--cache", "4"], 2, &["--cache", "8 B"]),
    (&["compare", "--segmented-lru=0"], 2, &["--segmented-lru", "1..=100"]),
    (&["compare", "--cache-ways", "1"], 2, &["--cache-ways", "2..=16"]),
    (&["compare", "--cache-ways", "8", "--segmented-lru"], 2, &["--cache-ways divides", "leave --segmented-lru out"]),
    (&["compare", "--writes", "-5"], 2, &["'-5' for '--writes", "at least 1"]),
    (&["compare", "--writes", "many"], 2, &["--writes", "500k"]),
    (&["compare", "--queue-depth", "8"], 2, &["--queue-depth", "--timing queued"]),
    (&["compare", "--timing", "queued", "--open-loop"], 2, &["arrival times", "rate"]),
    (&["compare", "--timing", "queued", "--time-scale", "2"], 2, &["--open-loop"]),
    (&["compare", "--timing", "queued", "--gc", "idle"], 2, &["--gc idle", "--open-loop", "--think"]),
    (&["compare", "--timing", "queued", "--gc", "idle", "--think", "0us"], 2, &["--gc idle", "--open-loop"]),
    (&["compare", "--think", "1ms"], 2, &["--think", "--timing queued"]),
    (&["compare", "--timing", "queued", "--think", "12"], 2, &["--think", "200us"]),
    (&["compare", "--timing", "queued", "--suspend", "2000s"], 2, &["--suspend", "at most 1000 s"]),
    (&["compare", "--timing", "queued", "--controller", "us"], 2, &["--controller", "no number"]),
    (&["compare", "--timing", "queued", "--ftl-time", "147us,85"], 2, &["--ftl-time", "a unit: ns, us, ms or s"]),
    (&["compare", "--ftl-time", "147us"], 2, &["--ftl-time means nothing while operations are only counted"]),
    (&["compare", "--timing", "queued", "--no-read-priority", "--suspend", "20us"], 2, &["choose one"]),
    (&["compare", "--timing", "queued", "--open-loop", "--think", "1ms"], 2, &["--think", "closed loop"]),
    (&["compare", "--write-buffer-policy", "lru"], 2, &["--write-buffer-policy", "add --write-buffer"]),
    (&["compare", "--write-buffer", "0", "--write-buffer-policy", "lru"], 2, &["add --write-buffer"]),
    (&["compare", "--write-buffer", "1MiB", "--write-buffer-policy", "clock"], 2, &["clock", "fifo, lru, block-lru"]),
    (&["compare", "--write-buffer", "512"], 2, &["--write-buffer holds no page", "demo is 4 KiB"]),
    (&["compare", "--write-buffer", "4GiB"], 2, &["--write-buffer holds 1 048 576 pages", "more than the 734 003"]),
    (&["compare", "--write-buffer", "99999999999pages"], 2, &["--write-buffer holds 99 999 999 999 pages"]),
    (&["compare", "--write-buffer", "some pages"], 2, &["--write-buffer", "64pages"]),
    (&["compare", "--write-buffer", "1MiB", "--placement", "fk"], 2, &["--placement fk", "--write-buffer changes"]),
    (&["compare", "--victim", "greedily"], 2, &["no victim policy", "did you mean `greedy`"]),
    (&["compare", "--validity", "gekco"], 2, &["no page-validity store `gekco`", "did you mean `gecko`", "ram-bitmap"]),
    (&["compare", "--ftl", "janus", "--janus-window", "8"], 2, &["--janus-window", "add --janus-defuse validity"]),
    (&["compare", "--ftl", "janus", "--janus-block-map=0"], 2, &["--janus-block-map", "1..=100"]),
    (&["compare", "--html", "no/such/folder/r.html"], 1, &["no folder no/such/folder"]),
    (&["compare", "absent.trace"], 1, &["absent.trace"]),
    (&["compare", "--lanes", "4000"], 2, &["--lanes 4000", "32 dies"]),
    (&["compare", "--gecko-s", "1000"], 2, &["--gecko-s 1000", "128 pages"]),
    (&["compare", "--gecko-filter", "1"], 2, &["--gecko-filter 1 B", "1MiB"]),
    (&["compare", "--gecko-spread", "1", "--gecko-two-way"], 2, &["leave --gecko-two-way out"]),
    (&["compare", "--gecko-filter", "1GiB"], 2, &["--gecko-filter 1073741824 B", "a byte for each page"]),
    (&["compare", "--ftl", "page", "gecko"], 2, &["gecko stands where a trace would", "--ftl page,gecko"]),
    (&["compare", "--gecko-buffer", "0"], 2, &["--gecko-buffer", "1..=16384"]),
    (&["compare", "--lenient"], 2, &["need a trace"]),
    (&["compare", "small.trace", "--workload", "uniform"], 2, &["cannot be used with"]),
    (&["compare", "--delta", "0"], 2, &["--delta"]),
    (&["compare", "--map", "fold"], 2, &["<TRACE>"]),
    (&["bench", "--case", "page-9g"], 2, &["page-9g", "none of the cases", "page-8g, page-64g"]),
    (&["bench", "--ftl", "page"], 2, &["--sizes"]),
    (&["bench", "--quick", "--sizes", "1GiB"], 2, &["cannot be used with"]),
];

/// Options that mean nothing to any FTL of the run.
const IDLE_CASES: [Case; 21] = [
    (
        &["--ftl", "page,block", "--cache", "8KiB"],
        2,
        &["--cache means nothing to page, block", "dftl, asa, lazy, uftl"],
    ),
    (
        &["--ftl", "page", "--segmented-lru"],
        2,
        &["--segmented-lru means nothing to page;", "by dftl, asa, lazy, gecko, flagship, ftrm, "],
    ),
    (
        &["--ftl", "page", "--cache-ways", "8"],
        2,
        &["--cache-ways means nothing to page;", "by dftl, asa, lazy, uftl, "],
    ),
    (&["--ftl", "uftl", "--segmented-lru"], 2, &["--segmented-lru means nothing to uftl"]),
    (
        &["--ftl", "superblock", "--victim", "greedy"],
        2,
        &["--victim means nothing to superblock", "janus-fixed, janus;"],
    ),
    (&["--ftl", "janus", "--placement", "single"], 2, &["--placement means nothing to janus", "by page, dftl"]),
    (&["--ftl", "fast", "--lanes", "2"], 2, &["--lanes means nothing to fast"]),
    (&["--ftl", "block,bast", "--validity", "log"], 2, &["--validity means nothing to block, bast", "by page, dftl"]),
    (
        &["--ftl", "page", "--gecko-t", "2"],
        2,
        &["by gecko, flagship, and with --validity gecko by page, dftl, asa, lazy, uftl, ib-ftl, ftrm, "],
    ),
    (&["--ftl", "page,dftl", "--gecko-s", "2"], 2, &["--gecko-s means nothing to page, dftl;"]),
    (&["--ftl", "page", "--gecko-two-way"], 2, &["--gecko-two-way means nothing to page;"]),
    (&["--ftl", "gecko", "--validity", "log", "--gecko-packed"], 2, &["--gecko-packed means nothing to gecko;"]),
    (&["--ftl", "bast", "--gecko-buffer", "2"], 2, &["--gecko-buffer means nothing to bast;"]),
    (&["--ftl", "page", "--gecko-filter", "1MiB"], 2, &["--gecko-filter means nothing to page;"]),
    (
        &["--ftl", "page", "--janus-defuse", "recency"],
        2,
        &["--janus-defuse means nothing to page;", "janus-fixed, janus;"],
    ),
    (&["--ftl", "janus-fixed", "--janus-learn"], 2, &["--janus-learn means nothing to janus-fixed;", "by janus;"]),
    (&["--ftl", "fast", "--janus-block-map"], 2, &["--janus-block-map means nothing to fast;"]),
    (
        &["--ftl", "blockset", "--groups", "8:4"],
        2,
        &["--groups means nothing to blockset;", "reconfigurable, superblock;"],
    ),
    (&["--ftl", "page,gecko", "--maps", "flash"], 2, &["--maps means nothing to page, gecko;", "by block, nftl, bast"]),
    (&["--ftl", "janus", "--level-wear"], 2, &["--level-wear means nothing to janus;", "leave --level-wear out"]),
    (&["--ftl", "janus", "--level-wear", "--wear-scans", "2"], 2, &["means nothing to janus;"]),
];

#[test]
fn options_that_mean_nothing_to_any_ftl_are_refused() {
    for (options, code, parts) in &IDLE_CASES {
        let arguments = [&["compare"], *options].concat();
        let ran = openftl(&arguments);
        assert_eq!((ran.code, &*ran.out), (*code, ""), "{arguments:?}: {}", ran.err);
        for part in *parts {
            assert!(ran.err.contains(part), "{arguments:?}: no `{part}` in: {}", ran.err);
        }
    }
}

const TRACE_CASES: [Case; 15] = [
    (&["trace", "info", "binary.trace"], 1, &["no known trace format", "it is binary", "00 01 02"]),
    (&["trace", "info", "misspelt.trace"], 1, &["line 1 is `fio version 2 iolgo`", "was `fio version 2 iolog` meant?"]),
    (&["trace", "info", "short.gz"], 1, &["short.gz", "cut short"]),
    (&["trace", "info", "absent.trace"], 1, &["absent.trace"]),
    (&["trace", "info", "empty.trace"], 1, &["empty.trace", "empty"]),
    (&["trace", "info", "noise.trace"], 1, &["noise.trace", "no known trace format"]),
    (&["trace", "info", "torn.trace"], 1, &["torn.trace:3", "not a line"]),
    (&["trace", "info", "small.trace", "--trace-format", "msrr"], 2, &["msrr", "did you mean `msr`"]),
    (&["trace", "info", "small.trace", "--time-unit", "fortnight"], 2, &["fortnight", "ms"]),
    (&["trace", "info", "said.trace", "--time-unit", "ms"], 2, &["said.trace", "`msr`", "unit of times", "fivecolumn"]),
    (&["compare", "said.trace", "--flag", "1=write"], 2, &["said.trace", "`msr`", "meaning of the flag"]),
    (&["compare", "small.trace", "--timing", "queued", "--open-loop"], 2, &["times were taken for ms", "--time-unit"]),
    (&["trace", "info", "small.trace", "--device-filter", "9"], 1, &["small.trace", "9"]),
    (&["trace", "convert", "small.trace", "--to", "xml"], 2, &["xml", "fio-v3"]),
    (&["trace", "convert", "small.trace", "--to", "csv", "-o", "no/such/folder/x"], 1, &["no/such/folder/x"]),
];

fn check(cases: &[Case]) {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    super::common::small_trace(folder.path());
    let write_bytes = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write_bytes("binary.trace", &(0..=255).collect::<Vec<u8>>());
    // A block of five bytes, of which two are there.
    write_bytes("short.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x05\0\xfa\xffhe");
    write("misspelt.trace", "fio version 2 iolgo\n/dev/a add\n/dev/a open\n/dev/a write 0 4096\n");
    write("empty.trace", "");
    write("noise.trace", "the quick brown fox\njumps over\nthe lazy dog\n");
    write("torn.trace", "0.5 0 8 8 0\n1.5 0 16 8 0\n2.5 0 24\n3.5 0 32 8 0\n");
    write("said.trace", "128166372003061629,hm,0,Write,8192,4096,331\n128166372003061630,hm,0,Read,8192,4096,331\n");
    let profile = output_of(&["list", "devices", "--toml", "demo"]);
    write("wrong.toml", &profile.replace("endurance_erases", "endurance"));
    let time = profile.lines().find(|line| line.starts_with("program_ns")).unwrap();
    let slow = profile.replace(time, "program_ns = 2_000_000_000_000").replace("\"demo\"", "\"slow\"");
    write("slow.toml", &slow);
    write("empty.toml", "");
    for (arguments, code, parts) in cases {
        let ran = openftl_in(folder.path(), arguments);
        assert_eq!(ran.code, *code, "{arguments:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{arguments:?}: an error prints nothing to standard output");
        assert!(ran.err.lines().any(|line| line.starts_with("error: ")), "{arguments:?}: {}", ran.err);
        for part in *parts {
            assert!(ran.err.contains(part), "{arguments:?}: no `{part}` in: {}", ran.err);
        }
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }
}

#[test]
fn compare_explains_what_is_wrong() {
    check(CASES);
}

const CRASH_CASES: [Case; 9] = [
    (&["crash", "--ftl", "gekco"], 2, &["no FTL `gekco`", "did you mean `gecko`"]),
    (&["crash", "--ftl", "page,page"], 2, &["page twice"]),
    (&["crash", "--mode", "rarely"], 2, &["rarely", "exhaustive"]),
    (&["crash", "--depth", "4"], 2, &["--depth", "1..=3"]),
    (&["crash", "--faults", "fire"], 2, &["fire", "pairing"]),
    (&["crash", "--faults", "worn,none"], 2, &["none", "alone"]),
    (&["crash", "--replay", "page-01"], 2, &["page-01", "not an id"]),
    (&["crash", "--sample", "--depth", "2"], 2, &["cannot be used with"]),
    (&["crash", "--ftl", "page", "--no-battery"], 2, &["--no-battery means nothing to page", "by dftl, asa, uftl;"]),
];

#[test]
fn crash_explains_what_is_wrong() {
    check(&CRASH_CASES);
}

#[test]
fn trace_explains_what_is_wrong() {
    check(&TRACE_CASES);
}

#[test]
fn malformed_lines_are_counted_when_asked_to() {
    let folder = folder();
    std::fs::write(folder.path().join("torn.trace"), "0.5 0 8 8 0\n1.5 0 16 8 0\n2.5 0 24\n3.5 0 32 8 0\n").unwrap();
    let ran = openftl_in(folder.path(), &["trace", "info", "torn.trace", "--lenient"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("1 malformed"), "{}", ran.out);
}

#[test]
fn without_a_command_help_is_shown() {
    let ran = openftl(&[]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("compare") && ran.err.contains("Usage"), "{}", ran.err);
    assert_eq!(openftl(&["comapre"]).code, 2);
}
