//! Means over seeds with their confidence, as a table and as charts.

use super::axes::Axis;
use super::rows::{Row, measures};
use crate::report::html::charts::{self, Axes};
use crate::report::html::svg::{Scale, escape, tick};
use crate::report::html::{page, section, table as html_table};
use crate::report::table::{Align, Table};
use crate::units::{bytes, count, duration_us, scaled, trimmed};
use serde::Serialize;
use std::collections::BTreeMap;

/// The axis over which results are averaged.
const SEED: &str = "seed";
const FTL: &str = "ftl";

/// The mean of a measure over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// Mean.
    pub mean: f64,
    /// Half the width of the 95% confidence interval by Student's t; none with one seed.
    pub half_width: Option<f64>,
    /// Seeds.
    pub seeds: usize,
}

/// 97.5% quantiles of Student's t distribution for 1 to 30 degrees of freedom. For more the last
/// one is taken, which makes intervals a little too wide.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Mean {
    fn of(values: &[f64]) -> Option<Self> {
        let seeds = values.len();
        let mean = values.iter().sum::<f64>() / seeds as f64;
        let freedom = seeds.checked_sub(1)?;
        let spread: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half_width = (freedom > 0).then(|| {
            let t = T[freedom.min(T.len()) - 1];
            t * (spread / freedom as f64 / seeds as f64).sqrt()
        });
        Some(Self { mean, half_width, seeds })
    }

    fn show(&self, one: &dyn Fn(f64) -> String) -> String {
        match self.half_width {
            Some(half) => format!("{} ± {}", one(self.mean), one(half)),
            None => one(self.mean),
        }
    }
}

/// The runs that differ in their seeds alone.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// What was varied but the seed, by option.
    pub varied: BTreeMap<String, String>,
    /// Runs that failed.
    pub failed: usize,
    /// Means by measure; none of those that are no number.
    pub means: BTreeMap<String, Mean>,
}

impl Group {
    fn mean(&self, measure: &str) -> Option<&Mean> {
        self.means.get(measure)
    }

    fn value(&self, axis: &str) -> &str {
        self.varied.get(axis).map_or("", String::as_str)
    }
}

/// Groups in the order of the rows.
pub fn groups(rows: &[Row]) -> Vec<Group> {
    let mut order: Vec<BTreeMap<String, String>> = Vec::new();
    let mut members: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let mut varied = row.varied.clone();
        varied.remove(SEED);
        match order.iter().position(|other| *other == varied) {
            Some(at) => members[at].push(row),
            None => {
                order.push(varied);
                members.push(vec![row]);
            }
        }
    }
    order.into_iter().zip(members).map(|(varied, rows)| group(varied, &rows)).collect()
}

fn group(varied: BTreeMap<String, String>, rows: &[&Row]) -> Group {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, value) in rows.iter().filter_map(|row| row.result.as_ref()).flat_map(measures) {
        if let Some(number) = value.as_f64() {
            values.entry(name).or_default().push(number);
        }
    }
    let means = values.into_iter().filter_map(|(name, values)| Some((name, Mean::of(&values)?))).collect();
    Group { varied, failed: rows.iter().filter(|row| row.result.is_none()).count(), means }
}

/// A measure of the table: its name, its head, and how a number of it is shown.
type Measure = (&'static str, &'static str, fn(f64) -> String);

const MEASURES: [Measure; 5] = [
    ("write_amplification", "programs/write", |value| format!("{value:.3}")),
    ("write_amplification_with_reads", "+reads", |value| format!("{value:.3}")),
    ("ram_bytes", "RAM", |value| bytes(value.round() as u64)),
    ("iops", "requests/s", |value| scaled(value)),
    ("write_p99_us", "write p99", duration_us),
];

/// A row for each group: what differs between groups, and means with half the width of their 95%
/// confidence intervals.
pub fn table(groups: &[Group], axes: &[Axis]) -> String {
    let shown: Vec<&Axis> = axes.iter().filter(|axis| axis.name != SEED && differs(groups, &axis.name)).collect();
    let measures: Vec<&Measure> =
        MEASURES.iter().filter(|(name, ..)| groups.iter().any(|group| group.mean(name).is_some())).collect();
    let failed = groups.iter().any(|group| group.failed > 0);
    let mut header: Vec<(&str, Align)> = shown.iter().map(|axis| (axis.name.as_str(), Align::Left)).collect();
    header.push(("runs", Align::Right));
    if failed {
        header.push(("failed", Align::Right));
    }
    header.extend(measures.iter().map(|(_, head, _)| (*head, Align::Right)));
    let mut table = Table::new(&header);
    for group in groups {
        let mut cells: Vec<String> = shown.iter().map(|axis| group.value(&axis.name).to_owned()).collect();
        cells.push(count(group.mean("write_amplification").map_or(0, |mean| mean.seeds as u64)));
        if failed {
            cells.push(count(group.failed as u64));
        }
        let one = |(name, _, show): &&Measure| group.mean(name).map_or_else(|| "-".to_owned(), |mean| mean.show(show));
        cells.extend(measures.iter().map(one));
        table.row(cells);
    }
    table.render()
}

fn differs(groups: &[Group], axis: &str) -> bool {
    groups.iter().any(|group| group.value(axis) != groups[0].value(axis))
}

/// A number in a value such as `0.7`, `16KiB` or `1024`.
fn number(value: &str) -> Option<f64> {
    value.parse::<f64>().ok().or_else(|| Some(value.parse::<crate::units::Size>().ok()?.0 as f64))
}

/// The axis along which charts are drawn: the first whose values differ and are all numbers.
fn along<'a>(groups: &[Group], axes: &'a [Axis]) -> Option<&'a Axis> {
    let numeric = |axis: &&Axis| axis.values.len() > 1 && axis.values.iter().all(|value| number(value).is_some());
    axes.iter().filter(|axis| axis.name != SEED && differs(groups, &axis.name)).find(numeric)
}

/// A page with a chart for each combination of what is neither FTL nor along the charts: a line for
/// each FTL, a mark where it was measured. Without such an axis, bars.
pub fn html(groups: &[Group], axes: &[Axis], command: &str) -> String {
    let along = along(groups, axes);
    let apart = |group: &Group| -> Vec<String> {
        let rest = |axis: &&Axis| {
            axis.name != FTL
                && axis.name != SEED
                && along.is_none_or(|x| x.name != axis.name)
                && differs(groups, &axis.name)
        };
        axes.iter().filter(rest).map(|axis| format!("{} {}", axis.name, group.value(&axis.name))).collect()
    };
    let mut panels: Vec<(Vec<String>, Vec<&Group>)> = Vec::new();
    for group in groups {
        let key = apart(group);
        match panels.iter_mut().find(|(other, _)| *other == key) {
            Some((_, members)) => members.push(group),
            None => panels.push((key, vec![group])),
        }
    }
    let mut body = format!("<h1>A sweep</h1>\n<p class=\"about\">Made with <code>{}</code>.</p>\n", escape(command));
    for (measure, label, _) in MEASURES.iter().filter(|(name, ..)| groups.iter().any(|g| g.mean(name).is_some())) {
        let mut charts = String::new();
        for (key, members) in &panels {
            let title = if key.is_empty() { (*label).to_owned() } else { format!("{label}: {}", key.join(", ")) };
            charts.push_str(&match along {
                Some(axis) => lines(&title, axis, label, members, measure),
                None => bars(&title, label, members, measure),
            });
        }
        body.push_str(&section(label, "", &charts));
    }
    let mut header: Vec<&str> = axes.iter().filter(|axis| axis.name != SEED).map(|axis| axis.name.as_str()).collect();
    header.extend(MEASURES.iter().map(|(_, head, _)| *head));
    let row = |group: &Group| -> Vec<String> {
        let values = axes.iter().filter(|axis| axis.name != SEED).map(|axis| group.value(&axis.name).to_owned());
        let means = MEASURES
            .iter()
            .map(|(name, _, show)| group.mean(name).map_or_else(|| "–".to_owned(), |mean| mean.show(show)));
        values.chain(means).collect()
    };
    let rows: Vec<Vec<String>> = groups.iter().map(row).collect();
    body.push_str(&section(
        "Means",
        "Over seeds, with half the width of the 95% confidence interval.",
        &html_table(&header, &rows),
    ));
    page("A sweep", &body, "openftl sweep --csv FILE writes every run with all its settings.")
}

fn lines(title: &str, along: &Axis, label: &str, members: &[&Group], measure: &str) -> String {
    let mut series: Vec<charts::Series> = Vec::new();
    for group in members {
        let (Some(x), Some(mean)) = (number(group.value(&along.name)), group.mean(measure)) else { continue };
        let ftl = group.value(FTL);
        let at = series.iter().position(|line| line.label == ftl).unwrap_or_else(|| {
            series.push(charts::Series { label: ftl.to_owned(), points: Vec::new(), average_of: 1 });
            series.len() - 1
        });
        series[at].points.push((x, mean.mean));
    }
    for line in &mut series {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let xs = || series.iter().flat_map(|line| &line.points).map(|point| point.0);
    let (low, high) = (xs().fold(f64::MAX, f64::min), xs().fold(0.0, f64::max));
    let axes = Axes {
        x: &along.name,
        y: label,
        x_scale: if low > 0.0 && high / low >= 16.0 { Scale::Log } else { Scale::Linear },
        x_tick: &tick,
        y_scale: Scale::Linear,
        // A line from a positive origin would make small differences look large.
        y_range: Some((0.0, 0.0)),
    };
    let labels: Vec<String> = series.iter().map(|line| line.label.clone()).collect();
    format!("<figure>\n{}{}</figure>\n", charts::lines(title, &axes, &series), charts::line_legend(&labels))
}

fn bars(title: &str, label: &str, members: &[&Group], measure: &str) -> String {
    let bar = |group: &&Group| {
        let value = group.mean(measure)?.mean;
        let part = charts::Part { fill: 0, label: label.to_owned(), value };
        Some(charts::Bar { label: group.value(FTL).to_owned(), parts: vec![part] })
    };
    let bars: Vec<charts::Bar> = members.iter().filter_map(bar).collect();
    format!("<figure>\n{}</figure>\n", charts::bars(title, label, &bars, &trimmed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;
    use serde_json::json;

    fn row(ftl: &str, ratio: &str, seed: u64, done: bool) -> Row {
        let result = done.then(|| samples::run(ftl, 0.5 + seed as f64, 0.2, seed, false));
        let varied = [("ftl", ftl.to_owned()), ("logical-ratio", ratio.to_owned()), ("seed", seed.to_string())];
        Row {
            schema: String::new(),
            openftl: String::new(),
            program: String::new(),
            varied: varied.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            command: String::new(),
            settings: json!({}),
            failed: (!done).then(|| "so".to_owned()),
            digest: None,
            result,
        }
    }

    fn axes() -> Vec<Axis> {
        let axis = |name: &str, values: &[&str]| Axis {
            name: name.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        vec![axis("logical-ratio", &["0.6", "0.7"]), axis("ftl", &["page", "dftl"]), axis("seed", &["1", "2", "3"])]
    }

    #[test]
    fn confidence_is_that_of_students_t() {
        // Mean 2, standard deviation 1, three values: 4.303 / sqrt(3).
        let mean = Mean::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((mean.mean, mean.seeds), (2.0, 3));
        assert!((mean.half_width.unwrap() - 2.4843).abs() < 1e-3, "{mean:?}");
        assert_eq!(Mean::of(&[5.0]).unwrap().half_width, None);
        assert_eq!(Mean::of(&[]), None);
        let many = Mean::of(&(0..100).map(f64::from).collect::<Vec<_>>()).unwrap();
        assert!((many.half_width.unwrap() - 2.042 * 29.011_5 / 10.0).abs() < 1e-3, "{many:?}");
    }

    #[test]
    fn runs_that_differ_in_their_seeds_are_one_row() {
        let rows: Vec<Row> = ["0.6", "0.7"]
            .into_iter()
            .flat_map(|ratio| (1..=3).map(move |seed| row("page", ratio, seed, !(ratio == "0.7" && seed == 2))))
            .collect();
        let groups = groups(&rows);
        assert_eq!((groups.len(), groups[0].failed, groups[1].failed), (2, 0, 1));
        assert_eq!(groups[1].means["write_amplification"].seeds, 2);
        let text = table(&groups, &axes());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("logical-ratio  runs  failed"), "{text}");
        assert!(lines[1].contains('±') && !lines[0].contains("ftl") && lines.len() == 3, "{text}");
    }

    #[test]
    fn a_chart_has_a_line_for_each_ftl() {
        let rows: Vec<Row> =
            ["page", "dftl"].into_iter().flat_map(|ftl| ["0.6", "0.7"].map(|ratio| row(ftl, ratio, 1, true))).collect();
        let groups = groups(&rows);
        assert_eq!(along(&groups, &axes()).unwrap().name, "logical-ratio");
        let page = html(&groups, &axes(), "openftl sweep <x>");
        assert!(page.contains("dftl") && page.contains("&lt;x&gt;") && !page.contains("NaN"));
        let measures = MEASURES.iter().filter(|(name, ..)| groups[0].mean(name).is_some()).count();
        assert_eq!(page.matches("<figure>").count(), measures);
        assert_eq!(number("16KiB"), Some(16384.0));
    }
}
