//! What came out of `openftl tail`: as text, as JSON, and as a page with charts.

use crate::args::TailArgs;
use crate::compare::{self, Prepared};
use crate::report::html::charts::{self, Axes};
use crate::report::html::svg::{Scale, escape, tick};
use crate::report::html::{bullets, page, section, table as html_table};
use crate::report::resolved;
use crate::report::table::{Align, Table, WIDTH, wrap};
use crate::units::{count, duration_us, scaled};
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};
use sim::RunResult;
use sim::result::{LatencyByKind, LatencyResult};
use sim::sustained::{self, Tried};

/// The form of the JSON object. Its number rises when a field changes its meaning or goes away.
pub const SCHEMA: &str = "openftl-tail/1";

/// What a closed loop got.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Closed {
    /// Clients, each with one request at a time.
    pub clients: u32,
    /// Read and write requests a second.
    pub per_s: f64,
    /// Share of the time that dies were busy, on average over dies.
    pub die_utilisation: f64,
}

impl Closed {
    /// Of a timed run.
    pub fn of(clients: u32, result: &RunResult) -> Self {
        let throughput = result.throughput.unwrap_or_default();
        Self { clients, per_s: result.requests_per_s(), die_utilisation: throughput.die_utilisation }
    }
}

/// Latencies at a share of the sustained rate.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Percent of the sustained rate.
    pub load: u32,
    /// Requests a second.
    pub per_s: f64,
    /// As it is.
    pub with: LatencyByKind,
    /// With collections that take no time.
    pub without: LatencyByKind,
}

/// What was measured of an FTL.
#[derive(Clone, Debug)]
pub struct OfFtl {
    /// Its name.
    pub ftl: String,
    /// What closed loops got.
    pub closed: Vec<Closed>,
    /// Rates that were tried.
    pub tried: Vec<Tried>,
    /// Latencies by load.
    pub points: Vec<Point>,
}

impl OfFtl {
    /// The most that a closed loop got, requests a second.
    pub fn bound(&self) -> f64 {
        self.closed.iter().map(|closed| closed.per_s).fold(0.0, f64::max)
    }

    /// The largest rate tried that was sustained, requests a second; 0 if none was.
    pub fn sustained(&self) -> f64 {
        sustained::largest(&self.tried)
    }
}

/// Picks the latencies of a kind of request.
type Kind = (&'static str, fn(&LatencyByKind) -> &LatencyResult);

const KINDS: [Kind; 2] = [("writes", |of| &of.write), ("reads", |of| &of.read)];

/// A figure of a latency distribution: its name in tables, that in JSON, and the figure, us.
type Figure = (&'static str, &'static str, fn(&LatencyResult) -> f64);

const FIGURES: [Figure; 5] = [
    ("p50", "p50", |of| of.p50),
    ("p99", "p99", |of| of.p99),
    ("p99.9", "p999", |of| of.p999),
    ("p99.99", "p9999", |of| of.p9999),
    ("max", "max", |of| of.max),
];

/// The figures of charts.
const CHARTED: [Figure; 2] = [FIGURES[2], FIGURES[4]];

/// The load of which the findings speak, if it was measured; else the largest.
const SPOKEN_OF: u32 = 70;

/// How many times as long as without collection; none if that took no time.
fn times(of: &Point, kind: &Kind, figure: &Figure) -> Option<f64> {
    let (with, without) = (figure.2(kind.1(&of.with)), figure.2(kind.1(&of.without)));
    (without > 0.0).then(|| with / without)
}

/// Everything that is reported.
pub struct Report {
    command: String,
    device: String,
    workload: String,
    method: String,
    settings: Vec<Value>,
    seed: u64,
    measured: Vec<OfFtl>,
}

impl Report {
    /// Of what was measured of each FTL; `source` is the hash of a trace.
    pub fn new(args: &TailArgs, prepared: &Prepared, source: Option<String>, measured: Vec<OfFtl>) -> Self {
        let load = &prepared.load.description;
        let settings = prepared.specs.iter().map(|spec| resolved::settings(spec, load, source.as_deref()));
        let warm_up = args.warm_up.map_or(u64::from(prepared.chosen.plan.logical_pages) / 20, |count| count.0);
        Self {
            command: compare::command_line(crate::config::said()),
            device: prepared.chosen.description.clone(),
            workload: load.clone(),
            method: format!(
                "Poisson arrivals at shares of the rate that is sustained: the largest of those tried of which 97% is \
                 done; the first {} requests of a run do not count; without collection: the same run from the same start, \
                 with collections that take no time",
                count(warm_up)
            ),
            settings: settings.collect(),
            seed: args.seed,
            measured,
        }
    }

    /// Kinds of requests that were made.
    fn kinds(&self) -> impl Iterator<Item = &'static Kind> + '_ {
        let points = || self.measured.iter().flat_map(|of_ftl| &of_ftl.points);
        KINDS.iter().filter(move |kind| points().any(|point| kind.1(&point.with).count > 0))
    }

    /// As text that fits 100 columns.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (label, text) in [("device", &self.device), ("workload", &self.workload), ("method", &self.method)] {
            for (i, line) in wrap(text, WIDTH - 10).into_iter().enumerate() {
                out.push_str(&format!("{:<10}{line}\n", if i == 0 { label } else { "" }));
            }
        }
        out.push_str(
            "\nRequests/s: closed loops, with the share of the time that dies were busy; and what is sustained\n",
        );
        out.push_str(&self.closed_table());
        for kind in self.kinds() {
            out.push_str(&format!(
                "\nLatency of {} by load, and how many times as long as without collection\n{}",
                kind.0,
                self.latency_table(kind)
            ));
        }
        out.push_str("\nWhat to see\n");
        for finding in self.findings() {
            for (i, line) in wrap(&finding, WIDTH - 4).into_iter().enumerate() {
                out.push_str(&format!("{}{line}\n", if i == 0 { "  - " } else { "    " }));
            }
        }
        out
    }

    fn closed_table(&self) -> String {
        let clients = self.measured.first().map_or(&[][..], |of_ftl| &of_ftl.closed);
        let heads: Vec<String> = clients.iter().map(|closed| format!("{} clients", closed.clients)).collect();
        let mut header = vec![("  ftl", Align::Left)];
        header.extend(heads.iter().map(|head| (head.as_str(), Align::Right)));
        header.push(("sustained", Align::Right));
        let mut table = Table::new(&header);
        for of_ftl in &self.measured {
            let mut row = vec![format!("  {}", of_ftl.ftl)];
            let cell = |closed: &Closed| format!("{}  {:.0}%", scaled(closed.per_s), 100.0 * closed.die_utilisation);
            row.extend(of_ftl.closed.iter().map(cell));
            row.push(scaled(of_ftl.sustained()));
            table.row(row);
        }
        table.render()
    }

    /// The heads and the rows of the table of a kind of request.
    fn rows(&self, kind: &Kind) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let mut heads = vec!["ftl", "load", "requests/s"];
        heads.extend(FIGURES.iter().map(|figure| figure.0));
        let row = |of_ftl: &OfFtl, point: &Point| {
            let mut row = vec![of_ftl.ftl.clone(), format!("{}%", point.load), scaled(point.per_s)];
            let cell = |figure: &Figure| {
                let time = duration_us(figure.2(kind.1(&point.with)));
                times(point, kind, figure).map_or_else(|| time.clone(), |times| format!("{time} {}x", short(times)))
            };
            row.extend(FIGURES.iter().map(cell));
            row
        };
        let rows = self.measured.iter().flat_map(|of_ftl| of_ftl.points.iter().map(|point| row(of_ftl, point)));
        (heads, rows.collect())
    }

    fn latency_table(&self, kind: &Kind) -> String {
        let (heads, rows) = self.rows(kind);
        let indented: Vec<String> =
            heads.iter().map(|head| format!("{}{head}", if *head == "ftl" { "  " } else { "" })).collect();
        let align = |head: &str| if head == "ftl" { Align::Left } else { Align::Right };
        let header: Vec<(&str, Align)> =
            indented.iter().zip(&heads).map(|(shown, head)| (shown.as_str(), align(head))).collect();
        let mut table = Table::new(&header);
        for mut row in rows {
            row[0] = format!("  {}", row[0]);
            table.row(row);
        }
        table.render()
    }

    /// One sentence for each kind of request and FTL.
    fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for kind in self.kinds() {
            for of_ftl in &self.measured {
                let spoken = of_ftl.points.iter().find(|point| point.load == SPOKEN_OF).or(of_ftl.points.last());
                let Some(point) = spoken else { continue };
                let part = |figure: &Figure| {
                    let time = duration_us(figure.2(kind.1(&point.with)));
                    match times(point, kind, figure) {
                        Some(times) => format!("{time}, {} times as long as without collection", short(times)),
                        None => format!("{time}, and 0 without collection"),
                    }
                };
                let [p999, max] = CHARTED.map(|figure| part(&figure));
                let (ftl, load) = (&of_ftl.ftl, point.load);
                findings.push(format!("{ftl} at {load}%: p99.9 of {} {p999}; max {max}", kind.0));
            }
        }
        findings
    }

    /// As one JSON object.
    pub fn json(&self) -> Result<String> {
        let point = |point: &Point| {
            let multiples = |kind: &Kind| -> Value {
                FIGURES.iter().map(|figure| (figure.1.to_owned(), json!(times(point, kind, figure)))).collect()
            };
            json!({
                "load_percent": point.load,
                "per_s": point.per_s,
                "latency_us": point.with,
                "latency_without_collection_us": point.without,
                "times_without_collection": {"write": multiples(&KINDS[0]), "read": multiples(&KINDS[1])},
            })
        };
        let of_ftl = |of_ftl: &OfFtl| {
            let loads: Vec<Value> = of_ftl.points.iter().map(point).collect();
            json!({"ftl": of_ftl.ftl, "sustained_per_s": of_ftl.sustained(), "closed_loops": of_ftl.closed,
                "tried": of_ftl.tried, "loads": loads})
        };
        let document = json!({
            "schema": SCHEMA,
            "openftl": env!("CARGO_PKG_VERSION"),
            "command": self.command,
            "device": self.device,
            "workload": self.workload,
            "method": self.method,
            "seed": self.seed,
            "settings": self.settings,
            "results": self.measured.iter().map(of_ftl).collect::<Vec<Value>>(),
        });
        let mut text = serde_json::to_string_pretty(&document).context("a result cannot be written as JSON")?;
        text.push('\n');
        Ok(text)
    }

    /// As a page: for each kind of request, charts with a line for each FTL.
    pub fn html(&self) -> String {
        let about = format!(
            "<h1>Latency under load</h1>\n<p class=\"about\">Made with <code>{}</code>.</p>\n{}",
            escape(&self.command),
            bullets(&[self.device.clone(), self.workload.clone(), self.method.clone()])
        );
        let mut body = about;
        body.push_str(&section("What to see", "", &bullets(&self.findings())));
        for kind in self.kinds() {
            let charts: String = CHARTED.iter().map(|figure| self.chart(kind, figure)).collect();
            let (heads, rows) = self.rows(kind);
            let title = format!("Latency of {}", kind.0);
            let charted = charts + &html_table(&heads, &rows);
            body.push_str(&section(&title, "By load, beside the same run without collection.", &charted));
        }
        page("Latency under load", &body, "openftl tail --json prints every distribution.")
    }

    fn chart(&self, kind: &Kind, figure: &Figure) -> String {
        let line = |of_ftl: &OfFtl| {
            let point = |point: &Point| Some((f64::from(point.load), times(point, kind, figure)?));
            let points = of_ftl.points.iter().filter_map(point).collect();
            charts::Series { label: of_ftl.ftl.clone(), points, average_of: 1 }
        };
        let series: Vec<charts::Series> = self.measured.iter().map(line).collect();
        let title = format!("{} of {}: times as long as without collection", figure.0, kind.0);
        let axes = Axes {
            x: "load, % of the sustained rate",
            y: "times",
            x_scale: Scale::Linear,
            x_tick: &tick,
            y_scale: Scale::Linear,
            y_range: Some((0.0, 1.0)),
        };
        let labels: Vec<String> = series.iter().map(|line| line.label.clone()).collect();
        format!("<figure>\n{}{}</figure>\n", charts::lines(&title, &axes, &series), charts::line_legend(&labels))
    }
}

/// A factor with two digits or so.
fn short(times: f64) -> String {
    if times < 9.95 { format!("{times:.1}") } else { format!("{times:.0}") }
}
