//! What the numbers of a comparison say, in sentences, and what to look at next.

use super::{NotTaken, Report, ram_total};
use crate::units::{bytes, duration_us};
use ftl::Purpose;
use sim::RunResult;

/// Ratios nearer to 1 than this are called equal.
const EQUAL_WITHIN: f64 = 0.005;

/// Two to four sentences on what stands out, and which options did not concern every FTL.
pub fn of(report: &Report) -> Vec<String> {
    let mut out = compared(&report.results);
    out.extend(report.not_taken.iter().map(NotTaken::sentence));
    out
}

fn compared(results: &[RunResult]) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(amplification(results));
    out.extend(memory(results));
    out.extend(tail(results));
    out.extend(idle_collector(results));
    if out.is_empty() {
        out.push(nothing(results));
    }
    out
}

fn nothing(results: &[RunResult]) -> String {
    match results {
        [] => "nothing was run".to_owned(),
        [result] if result.host.writes == 0 => {
            format!("the workload wrote nothing, so {} has no write-amplification", result.ftl)
        }
        [result] => format!(
            "{} programs {:.3} pages for each page the host writes",
            result.ftl, result.write_amplification.programs_per_write
        ),
        _ => "the workload wrote nothing, so there is no write-amplification to compare".to_owned(),
    }
}

fn programs(result: &RunResult) -> f64 {
    result.write_amplification.programs_per_write
}

fn amplification(results: &[RunResult]) -> Option<String> {
    let written: Vec<&RunResult> = results.iter().filter(|result| result.host.writes > 0).collect();
    let least = written.iter().min_by(|a, b| programs(a).total_cmp(&programs(b)))?;
    let most = written.iter().max_by(|a, b| programs(a).total_cmp(&programs(b)))?;
    if written.len() < 2 {
        return None;
    }
    let ratio = programs(most) / programs(least);
    if ratio - 1.0 < EQUAL_WITHIN {
        return Some(format!("all program alike, {:.3} pages for each host write", programs(least)));
    }
    let (purpose, part) = largest_difference(least, most);
    Some(format!(
        "{} programs least, {:.3} pages for each host write; {} programs {} more, most of the difference ({:.3}) for \
         {}",
        least.ftl,
        programs(least),
        most.ftl,
        percent(ratio - 1.0),
        part,
        plain(purpose),
    ))
}

fn largest_difference(least: &RunResult, most: &RunResult) -> (Purpose, f64) {
    let difference = |purpose: Purpose| {
        most.write_amplification.by_purpose.get(purpose).programs
            - least.write_amplification.by_purpose.get(purpose).programs
    };
    Purpose::ALL
        .into_iter()
        .map(|purpose| (purpose, difference(purpose)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or((Purpose::Host, 0.0))
}

/// A purpose within a sentence.
fn plain(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Host => "host data",
        Purpose::Gc => "garbage collection",
        Purpose::Translation => "map pages in flash",
        Purpose::TranslationGc => "collecting map pages",
        Purpose::Validity | Purpose::ValidityQuery => "its record of dead pages",
        Purpose::ValidityGc => "collecting its record of dead pages",
        Purpose::Checkpoint => "checkpoints",
        Purpose::Recovery => "recovery",
        Purpose::Wear => "wear levelling",
        Purpose::Refresh => "moving data that could barely be read",
    }
}

fn memory(results: &[RunResult]) -> Option<String> {
    if results.len() < 2 {
        return None;
    }
    let least = results.iter().min_by_key(|result| ram_total(result))?;
    let most = results.iter().max_by_key(|result| ram_total(result))?;
    let (small, large) = (ram_total(least), ram_total(most));
    if small == 0 || (large as f64 / small as f64) - 1.0 < EQUAL_WITHIN {
        return None;
    }
    Some(format!(
        "{} holds least in RAM, {}; {} holds {:.1} times as much, {}",
        least.ftl,
        bytes(small),
        most.ftl,
        large as f64 / small as f64,
        bytes(large)
    ))
}

fn tail(results: &[RunResult]) -> Option<String> {
    let p99 = |result: &RunResult| {
        result.latency_us.as_ref().filter(|latency| latency.write.count > 0).map(|latency| latency.write.p99)
    };
    let timed: Vec<(&RunResult, f64)> = results.iter().filter_map(|r| p99(r).map(|us| (r, us))).collect();
    let (best, low) = timed.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (worst, high) = timed.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    if timed.len() < 2 || high / low - 1.0 < EQUAL_WITHIN {
        return None;
    }
    Some(format!(
        "99 of 100 writes end within {} under {}, within {} under {}",
        duration_us(*low),
        best.ftl,
        duration_us(*high),
        worst.ftl
    ))
}

/// Collection below this many programs per write is as good as none.
const HARDLY_COLLECTED: f64 = 0.02;

fn idle_collector(results: &[RunResult]) -> Option<String> {
    let gc = |result: &RunResult| result.write_amplification.by_purpose.gc.programs;
    let written = results.iter().any(|result| result.host.writes > 0);
    (written && results.iter().all(|result| gc(result) < HARDLY_COLLECTED)).then(|| {
        "the collector has next to nothing to move: whole blocks die before they are needed, or too little was written; \
         a fuller device (--logical-ratio 0.9) or writes with less order show what it costs"
            .to_owned()
    })
}

fn percent(share: f64) -> String {
    if share < 0.1 { format!("{:.1}%", share * 100.0) } else { format!("{:.0}%", share * 100.0) }
}

/// More than this are not read.
const SUGGESTIONS: usize = 4;

/// Commands that show another side of the same question.
pub fn next(report: &Report) -> Vec<String> {
    let has = |flag: &str| report.command.contains(flag);
    let trace = report.workload.starts_with("trace ");
    let timed = report.results.iter().any(|result| result.latency_us.is_some());
    let mut out = Vec::new();
    if trace {
        out.push(
            "as much of such a load as wanted: openftl trace fit TRACE -o fit.toml, then --workload profile:fit.toml",
        );
    } else if !has("--workload") {
        out.push("skewed writes: openftl compare --workload zipf:theta=0.99 (openftl list workloads)");
    }
    if !timed && trace {
        out.push("latency: add --timing queued, with --open-loop to keep the trace's own times");
    } else if !timed {
        out.push("latency: add --timing queued, and reads: --workload uniform:reads=50");
    }
    if !has("--html") {
        out.push("charts in one file: add --html report.html");
    }
    if !has("--capacity") && out.len() < SUGGESTIONS {
        out.push("how RAM grows with the device: add --capacity 8GiB");
    }
    if !has("--logical-ratio") && out.len() < SUGGESTIONS {
        out.push("a fuller disk: add --logical-ratio 0.8, and watch gc grow");
    }
    if out.is_empty() {
        out.push("another device: openftl list devices");
    }
    out.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn the_largest_cause_is_named() {
        let lines = of(&samples::report(true));
        assert_eq!(
            lines[0],
            "page programs least, 1.854 pages for each host write; dftl programs 19% more, most of the difference \
             (0.310) for map pages in flash"
        );
        assert!(lines[1].starts_with("gecko holds least in RAM, 96 KiB; page holds 10.7 times as much"));
        assert!(lines[2].contains("under page"), "{}", lines[2]);
        assert_eq!(lines.last().unwrap(), "--cache means nothing to page, which runs without");
    }

    #[test]
    fn one_run_and_no_writes_are_described_too() {
        let mut results = vec![samples::run("page", 0.5, 0.0, 100, false)];
        assert_eq!(compared(&results), ["page programs 1.500 pages for each page the host writes"]);
        results[0].host.writes = 0;
        assert!(compared(&results)[0].contains("wrote nothing"));
        assert_eq!(compared(&[]), ["nothing was run"]);
    }

    #[test]
    fn there_is_always_something_to_try() {
        let mut report = samples::report(true);
        for command in ["openftl compare", "openftl compare --workload x --html y --logical-ratio 1 --cache 2"] {
            report.command = command.to_owned();
            assert!(!next(&report).is_empty());
        }
    }
}
