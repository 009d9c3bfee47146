//! A comparison as text that fits 100 columns.

use super::findings;
use super::table::{Align, Table, WIDTH, wrap};
use super::{Report, buffered, purposes_in_use, ram, ram_total, structures};
use crate::units::{bytes, count, duration_us, scaled, trimmed};
use ftl::Purpose;
use sim::RunResult;
use sim::result::LatencyResult;

/// The report as text.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    for (label, text) in [("device", &report.device), ("workload", &report.workload), ("method", &report.method)] {
        for (i, line) in wrap(text, WIDTH - 10).into_iter().enumerate() {
            out.push_str(&format!("{:<10}{line}\n", if i == 0 { label } else { "" }));
        }
    }
    out.push('\n');
    out.push_str(&ftls(&report.results));
    section(&mut out, "Write-amplification: flash pages programmed for each page the host wrote, by cause");
    out.push_str(&amplification(&report.results));
    out.push_str(&legend(&report.results));
    let buffered = buffered::lines(&report.results);
    if !buffered.is_empty() {
        section(&mut out, "Write buffer");
        buffered.iter().for_each(|line| push_wrapped(&mut out, line));
    }
    section(&mut out, "Cost: RAM that the FTL holds, erases of blocks");
    out.push_str(&cost(&report.results));
    out.push_str(&explained(&report.results));
    if let Some(text) = latency(&report.results) {
        section(&mut out, "Latency of requests");
        out.push_str(&text);
    }
    section(&mut out, "What to see");
    for finding in findings::of(report) {
        push_wrapped(&mut out, &finding);
    }
    section(&mut out, "What to try next");
    for suggestion in findings::next(report) {
        push_wrapped(&mut out, &suggestion);
    }
    out
}

fn section(out: &mut String, title: &str) {
    out.push('\n');
    out.push_str(title);
    out.push('\n');
}

fn push_wrapped(out: &mut String, text: &str) {
    for (i, line) in wrap(text, WIDTH - 4).into_iter().enumerate() {
        out.push_str(if i == 0 { "  - " } else { "    " });
        out.push_str(&line);
        out.push('\n');
    }
}

/// What each FTL is, in a line.
fn ftls(results: &[RunResult]) -> String {
    let mut table = Table::new(&[("  ftl", Align::Left), ("what it is", Align::Left)]);
    let mut differing = String::new();
    for result in results {
        let info = ftl::ftls::infos().iter().find(|info| info.name == result.ftl);
        table.row(vec![format!("  {}", result.ftl), info.map_or("", |info| info.summary).to_owned()]);
        if let Some(differs) = info.and_then(|info| info.differs) {
            let text = format!("{} is not as published: {differs}", result.ftl);
            wrap(&text, WIDTH - 2).into_iter().for_each(|line| differing += &format!("  {line}\n"));
        }
    }
    table.render() + &differing
}

/// The head of a purpose's column.
const fn short(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Host => "host",
        Purpose::Gc => "gc",
        Purpose::Translation => "map",
        Purpose::TranslationGc => "map gc",
        Purpose::Validity => "valid",
        Purpose::ValidityQuery => "vquery",
        Purpose::ValidityGc => "v gc",
        Purpose::Checkpoint => "ckpt",
        Purpose::Recovery => "recov",
        Purpose::Wear => "wear",
        Purpose::Refresh => "renew",
    }
}

/// Purposes that programmed anything: a column of zeros says nothing.
fn programming(results: &[RunResult]) -> Vec<Purpose> {
    let programs = |p: &Purpose| results.iter().any(|result| result.flash.get(*p).programs > 0);
    purposes_in_use(results).into_iter().filter(programs).collect()
}

fn amplification(results: &[RunResult]) -> String {
    let purposes = programming(results);
    let mut header = vec![("  ftl", Align::Left), ("total", Align::Right)];
    header.extend(purposes.iter().map(|purpose| (short(*purpose), Align::Right)));
    header.push(("+reads", Align::Right));
    let mut table = Table::new(&header);
    for result in results {
        let wa = &result.write_amplification;
        let mut row = vec![format!("  {}", result.ftl)];
        if result.host.writes == 0 {
            row.extend(vec!["-".to_owned(); header.len() - 1]);
        } else {
            row.push(format!("{:.3}", wa.programs_per_write));
            row.extend(purposes.iter().map(|purpose| share(wa.by_purpose.get(*purpose).programs)));
            row.push(format!("{:.3}", wa.paper));
        }
        table.row(row);
    }
    table.render()
}

fn share(value: f64) -> String {
    if value == 0.0 { "-".to_owned() } else { format!("{value:.3}") }
}

fn legend(results: &[RunResult]) -> String {
    let delta = results.first().map_or(0.0, |result| result.write_amplification.delta);
    let mut text = String::from("gc moves live host data.");
    let used = programming(results);
    if used.contains(&Purpose::Translation) {
        text.push_str(" map: translation pages kept in flash.");
    }
    if used.contains(&Purpose::Validity) {
        text.push_str(" valid: the record in flash of which pages are dead.");
    }
    if used.contains(&Purpose::Refresh) {
        text.push_str(" renew: data moved before too many of its bits are wrong.");
    }
    text.push_str(&format!(
        " +reads: the total plus flash reads, {} of which weigh as one program (spare areas: 1/32 of a read).",
        trimmed(delta)
    ));
    wrap(&text, WIDTH - 2).into_iter().map(|line| format!("  {line}\n")).collect()
}

fn cost(results: &[RunResult]) -> String {
    let mut table = Table::new(&[
        ("  ftl", Align::Left),
        ("RAM", Align::Right),
        ("erases", Align::Right),
        ("max/block", Align::Right),
        ("mean", Align::Right),
        ("stddev", Align::Right),
        ("largest structures in RAM", Align::Left),
    ]);
    for result in results {
        let wear = &result.wear;
        let parts: Vec<String> = largest(result).map(|(name, size)| format!("{name} {}", bytes(size))).collect();
        table.row(vec![
            format!("  {}", result.ftl),
            bytes(ram_total(result)),
            count(wear.erases_total),
            wear.max.to_string(),
            format!("{:.1}", wear.mean),
            format!("{:.1}", wear.stddev),
            parts.join(", "),
        ]);
    }
    table.render()
}

/// The structures of a run that the table names.
fn largest(result: &RunResult) -> impl Iterator<Item = (&str, u64)> {
    structures(result).into_iter().take(3)
}

/// What the structures are for that the table names.
fn explained(results: &[RunResult]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in results.iter().flat_map(largest) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let parts = names.iter().filter_map(|name| Some(format!("{name}: {}.", ram::meaning(name)?)));
    let text = parts.collect::<Vec<_>>().join(" ");
    wrap(&text, WIDTH - 2).into_iter().map(|line| format!("  {line}\n")).collect()
}

fn latency(results: &[RunResult]) -> Option<String> {
    if results.iter().all(|result| result.latency_us.is_none()) {
        return None;
    }
    let mut table = Table::new(&[
        ("  ftl", Align::Left),
        ("request", Align::Left),
        ("mean", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("max", Align::Right),
        ("requests/s", Align::Right),
        ("dies busy", Align::Right),
    ]);
    for result in results {
        let Some(latency) = &result.latency_us else { continue };
        for (i, (kind, figures)) in kinds(latency).into_iter().enumerate() {
            let mut row = vec![if i == 0 { format!("  {}", result.ftl) } else { String::new() }, kind.to_owned()];
            row.extend([figures.mean, figures.p50, figures.p99, figures.p999, figures.max].map(duration_us));
            let rates = result.throughput.filter(|_| i == 0);
            row.push(rates.map_or_else(String::new, |t| scaled(t.iops)));
            row.push(rates.map_or_else(String::new, |t| format!("{:.0}%", t.die_utilisation * 100.0)));
            table.row(row);
        }
    }
    Some(table.render())
}

/// The kinds of request that occurred.
fn kinds(latency: &sim::result::LatencyByKind) -> Vec<(&'static str, &LatencyResult)> {
    let kinds = [("read", &latency.read), ("write", &latency.write), ("flush", &latency.flush)];
    kinds.into_iter().filter(|(_, figures)| figures.count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn the_report_fits_100_columns_and_names_every_ftl() {
        for timed in [false, true] {
            let text = render(&samples::report(timed));
            for line in text.lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
                assert_eq!(line, line.trim_end());
            }
            for ftl in ["page", "dftl", "gecko"] {
                assert!(text.contains(&format!("\n  {ftl} ")), "{text}");
            }
            assert_eq!(text.contains("p99.9"), timed);
        }
    }

    #[test]
    fn all_purposes_fit_at_once() {
        let mut report = samples::report(false);
        for result in &mut report.results {
            result.flash = sim::ByPurpose::from_fn(|_| sim::result::FlashResult { programs: 9, ..Default::default() });
            result.ftl = "reconfigurable".to_owned();
        }
        assert!(render(&report).lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn a_run_without_writes_has_no_amplification() {
        let mut report = samples::report(false);
        report.results[0].host.writes = 0;
        let text = render(&report);
        assert!(text.lines().any(|line| line.starts_with("  page") && line.contains(" -")), "{text}");
    }
}
