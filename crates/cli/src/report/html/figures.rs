//! The figures of a report: each a heading, a sentence, a chart, its legend and its data.

use super::charts::{self, Axes, Bar, Column, Part, Series};
use super::svg::{Scale, tick};
use super::{section, table};
use crate::report::{meaning, purposes_in_use, structures};
use crate::units::{bytes, count, duration_us, trimmed};
use ftl::Purpose;
use sim::RunResult;
use sim::result::{LatencyByKind, LatencyResult};
use std::collections::BTreeMap;

/// Rows of a data table beyond which every n-th is shown.
const DATA_ROWS: usize = 60;

/// Intervals that the lines over time are averaged over: collection comes in bursts.
const AVERAGE_OF: usize = 9;

/// Every figure that these results can fill.
pub fn all(results: &[RunResult]) -> Vec<String> {
    let mut out = Vec::new();
    if results.iter().any(|result| result.host.writes > 0) {
        out.push(amplification(results));
    }
    out.extend(latency(results, "read", |latency| &latency.read));
    out.extend(latency(results, "write", |latency| &latency.write));
    out.extend(latency(results, "flush", |latency| &latency.flush));
    out.extend(timeline(results));
    out.push(memory(results));
    out.extend(wear(results));
    out
}

fn figure(title: &str, about: &str, chart: &str, legend: &str, data: &str) -> String {
    let data = format!("<details>\n<summary>the figure's data</summary>\n{data}</details>\n");
    section(title, about, &format!("<figure>\n{chart}{legend}</figure>\n{data}"))
}

fn fixed(value: f64) -> String {
    format!("{value:.3}")
}

fn names(results: &[RunResult]) -> Vec<String> {
    results.iter().map(|result| result.ftl.clone()).collect()
}

fn amplification(results: &[RunResult]) -> String {
    let purposes = purposes_in_use(results);
    let stack = |pick: &dyn Fn(&RunResult, Purpose) -> f64| -> Vec<Bar> {
        let parts = |result: &RunResult| {
            let part = |p: &Purpose| Part { fill: *p as usize, label: p.name().to_owned(), value: pick(result, *p) };
            purposes.iter().map(part).collect()
        };
        results.iter().map(|result| Bar { label: result.ftl.clone(), parts: parts(result) }).collect()
    };
    let programs = |result: &RunResult, purpose| result.write_amplification.by_purpose.get(purpose).programs;
    let paper = |result: &RunResult, purpose| result.write_amplification.by_purpose.get(purpose).paper;
    let delta = results.first().map_or(0.0, |result| result.write_amplification.delta);
    let weighed = format!("programs + reads / {}, per host page written", trimmed(delta));
    let mut chart = charts::bars(
        "programs per host write by cause",
        "flash pages programmed per host page written",
        &stack(&programs),
        &fixed,
    );
    chart.push_str(&charts::bars(
        "programs and weighed reads per host write by cause",
        &weighed,
        &stack(&paper),
        &fixed,
    ));
    let entries: Vec<(usize, String)> =
        purposes.iter().map(|p| (*p as usize, format!("{}: {}", p.name(), meaning(*p)))).collect();
    let mut header = vec!["FTL", "form", "total"];
    header.extend(purposes.iter().map(|purpose| purpose.name()));
    let rows: Vec<Vec<String>> = results
        .iter()
        .flat_map(|result| {
            let wa = &result.write_amplification;
            let row = |form: &str, total: f64, of: &dyn Fn(Purpose) -> f64| {
                let mut row = vec![result.ftl.clone(), form.to_owned(), fixed(total)];
                row.extend(purposes.iter().map(|purpose| fixed(of(*purpose))));
                row
            };
            [
                row("programs", wa.programs_per_write, &|p| programs(result, p)),
                row("with reads", wa.paper, &|p| paper(result, p)),
            ]
        })
        .collect();
    figure(
        "Write-amplification by cause",
        "How many flash pages are programmed for each page the host writes, and what for. Below, flash reads count too, \
         as the share of a program's time that they take.",
        &chart,
        &charts::fill_legend(&entries),
        &table(&header, &rows),
    )
}

fn latency(results: &[RunResult], kind: &str, pick: fn(&LatencyByKind) -> &LatencyResult) -> Option<String> {
    let timed: Vec<(&RunResult, &LatencyResult)> = results
        .iter()
        .filter_map(|result| result.latency_us.as_ref().map(|latency| (result, pick(latency))))
        .filter(|(_, latency)| latency.count > 0)
        .collect();
    if timed.is_empty() {
        return None;
    }
    let series: Vec<Series> = timed
        .iter()
        .map(|(result, latency)| Series {
            label: result.ftl.clone(),
            points: latency.cdf.iter().filter(|p| p.us > 0.0).map(|p| (p.us, p.share * 100.0)).collect(),
            average_of: 1,
        })
        .collect();
    let axes = Axes {
        x: "latency (logarithmic)",
        y: "requests that took no longer, %",
        x_scale: Scale::Log,
        x_tick: &|us| duration_us(us).replace(".0 ", " "),
        y_scale: Scale::Linear,
        y_range: Some((0.0, 100.0)),
    };
    let labels: Vec<String> = series.iter().map(|s| s.label.clone()).collect();
    let rows: Vec<Vec<String>> = timed
        .iter()
        .map(|(result, l)| {
            let mut row = vec![result.ftl.clone(), count(l.count)];
            row.extend([l.mean, l.p50, l.p99, l.p999, l.max].map(|us| format!("{us:.1}")));
            row
        })
        .collect();
    let header = ["FTL", "requests", "mean, µs", "p50, µs", "p99, µs", "p99.9, µs", "max, µs"];
    Some(figure(
        &format!("Latency of {kind} requests"),
        "From arrival to completion. The further left a curve reaches the top, the shorter the tail.",
        &charts::lines(&format!("distribution of {kind} latency"), &axes, &series),
        &charts::line_legend(&labels),
        &table(&header, &rows),
    ))
}

/// The timeline without its last interval if that is so short that it says nothing.
fn whole_intervals(result: &RunResult) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> =
        result.timeline.iter().map(|p| (p.host_writes as f64, p.programs_per_write)).collect();
    if let [first, .., before, last] = points[..]
        && last.0 - before.0 < first.0 / 2.0
    {
        points.pop();
    }
    points
}

fn timeline(results: &[RunResult]) -> Option<String> {
    let series: Vec<Series> = results
        .iter()
        .map(|result| Series { label: result.ftl.clone(), points: whole_intervals(result), average_of: AVERAGE_OF })
        .collect();
    let longest = series.iter().map(|s| s.points.len()).max().unwrap_or(0);
    if longest < 2 {
        return None;
    }
    let axes = Axes {
        x: "host pages written in the measured part",
        y: "programs per host write",
        x_scale: Scale::Linear,
        x_tick: &tick,
        y_scale: Scale::Linear,
        y_range: Some((1.0, 1.5)),
    };
    let mut header = vec!["host pages written"];
    header.extend(results.iter().map(|result| result.ftl.as_str()));
    let step = longest.div_ceil(DATA_ROWS);
    let rows: Vec<Vec<String>> = (0..longest)
        .step_by(step)
        .map(|i| {
            let x = series.iter().find_map(|s| s.points.get(i)).map_or(0.0, |point| point.0);
            let mut row = vec![count(x as u64)];
            row.extend(series.iter().map(|s| s.points.get(i).map_or_else(String::new, |point| fixed(point.1))));
            row
        })
        .collect();
    Some(figure(
        "Write-amplification over time",
        "Programs per host write: faint for each interval of the measured part, strong for the average of nine around \
         it. A level line means that the device was in a steady state.",
        &charts::lines("write-amplification over time", &axes, &series),
        &charts::line_legend(&names(results)),
        &table(&header, &rows),
    ))
}

/// Units of memory, the largest first.
const UNITS: [(f64, &str); 3] = [(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB")];

/// The structures that get a colour of their own, by the largest share any run has of them; the
/// rest are "others".
fn coloured(results: &[RunResult]) -> Vec<String> {
    let mut largest: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, size) in results.iter().flat_map(structures) {
        let most = largest.entry(name).or_default();
        *most = size.max(*most);
    }
    let mut names: Vec<(&str, u64)> = largest.into_iter().collect();
    names.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    let shown = if names.len() > charts::FILLS { charts::FILLS - 1 } else { names.len() };
    names[..shown].iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn memory(results: &[RunResult]) -> String {
    let shown = coloured(results);
    let most = results.iter().map(crate::report::ram_total).max().unwrap_or(0);
    let (unit, unit_name) = UNITS.into_iter().find(|(unit, _)| most as f64 >= *unit).unwrap_or((1.0, "B"));
    let mut others = false;
    let mut bars = Vec::new();
    for result in results {
        let held = structures(result);
        let of = |name: &str| held.iter().filter(|(other, _)| *other == name).map(|(_, size)| *size).sum::<u64>();
        // The same order in every bar, so that parts can be compared.
        let part = |(fill, name): (usize, &String)| Part { fill, label: name.clone(), value: of(name) as f64 / unit };
        let mut parts: Vec<Part> = shown.iter().enumerate().map(part).collect();
        let rest = held.iter().filter(|(name, _)| !shown.iter().any(|other| other == name)).map(|(_, size)| *size);
        let rest: u64 = rest.sum();
        if rest > 0 {
            others = true;
            parts.push(Part { fill: shown.len(), label: "others".to_owned(), value: rest as f64 / unit });
        }
        bars.push(Bar { label: result.ftl.clone(), parts });
    }
    let mut entries: Vec<(usize, String)> = shown.iter().cloned().enumerate().collect();
    if others {
        entries.push((shown.len(), "others".to_owned()));
    }
    let rows: Vec<Vec<String>> = results
        .iter()
        .flat_map(|result| {
            let row = |(name, size): (&str, u64)| vec![result.ftl.clone(), name.to_owned(), bytes(size), count(size)];
            structures(result).into_iter().map(row)
        })
        .collect();
    figure(
        "RAM by structure",
        "What each FTL holds in memory at the end of the run.",
        &charts::bars("RAM by structure", unit_name, &bars, &|v| bytes((v * unit).round() as u64)),
        &charts::fill_legend(&entries),
        &table(&["FTL", "structure", "size", "bytes"], &rows),
    )
}

fn wear(results: &[RunResult]) -> Option<String> {
    let panels: Vec<(String, Vec<Column>)> = results
        .iter()
        .map(|result| {
            let columns = result.wear.histogram.iter().map(|bin| Column {
                from: f64::from(bin.from),
                to: f64::from(bin.to),
                count: f64::from(bin.blocks),
            });
            (result.ftl.clone(), columns.collect())
        })
        .collect();
    if panels.iter().all(|(_, columns)| columns.is_empty()) {
        return None;
    }
    let rows: Vec<Vec<String>> = results
        .iter()
        .flat_map(|result| {
            let row = |bin: &sim::result::WearBin| {
                let erases =
                    if bin.from == bin.to { bin.from.to_string() } else { format!("{}–{}", bin.from, bin.to) };
                vec![result.ftl.clone(), erases, count(u64::from(bin.blocks))]
            };
            result.wear.histogram.iter().map(row)
        })
        .collect();
    Some(figure(
        "Erases of each block",
        "How many blocks were erased how often, preconditioning included. A narrow hill wears evenly.",
        &charts::histograms("erases of each block", "times erased", "blocks", &panels),
        "",
        &table(&["FTL", "times erased", "blocks"], &rows),
    ))
}
