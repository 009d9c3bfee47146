//! The charts of a report: stacked bars, lines, histograms. Each is an SVG string.

use super::svg::{Axis, Scale, Svg, text_width, tick};

/// Width of a chart in user units.
pub const WIDTH: f64 = 820.0;
const BAR: f64 = 24.0;
const ROW: f64 = 36.0;
/// Colours that a chart has for fills.
pub const FILLS: usize = 10;
/// Colours that a chart has for lines; with their dashes, 12 lines differ.
pub const LINES: usize = 6;

/// A part of a bar.
pub struct Part {
    /// Which fill.
    pub fill: usize,
    /// What it is.
    pub label: String,
    /// How long.
    pub value: f64,
}

/// One bar.
pub struct Bar {
    /// Its label at the left.
    pub label: String,
    /// Its parts from the left.
    pub parts: Vec<Part>,
}

/// Horizontal stacked bars with their totals at the end. `show` writes a value with its unit; the
/// axis has plain numbers.
pub fn bars(title: &str, axis_label: &str, bars: &[Bar], show: &dyn Fn(f64) -> String) -> String {
    let total = |bar: &Bar| bar.parts.iter().map(|part| part.value).sum::<f64>();
    let left = bars.iter().map(|bar| text_width(&bar.label)).fold(40.0, f64::max) + 14.0;
    let room = bars.iter().map(|bar| text_width(&show(total(bar)))).fold(40.0, f64::max) + 16.0;
    let bottom = 10.0 + ROW * bars.len() as f64;
    let most = bars.iter().map(total).fold(0.0, f64::max);
    let axis = Axis::linear(0.0, most, left, WIDTH - room);
    let mut svg = Svg::new(WIDTH, bottom + 44.0, title);
    for value in axis.ticks() {
        let x = axis.at(value);
        svg.line((x, 6.0), (x, bottom), "grid");
        svg.text(x, bottom + 17.0, "middle", "tick", &tick(value));
    }
    for (i, bar) in bars.iter().enumerate() {
        let y = 10.0 + ROW * i as f64 + (ROW - BAR) / 2.0;
        svg.text(left - 10.0, y + BAR * 0.68, "end", "label", &bar.label);
        let mut sum = 0.0;
        for part in bar.parts.iter().filter(|part| part.value > 0.0) {
            let (from, to) = (axis.at(sum), axis.at(sum + part.value));
            let says = format!("{}: {} {}", bar.label, part.label, show(part.value));
            svg.rect(from, y, to - from, BAR, &format!("fill{}", part.fill % FILLS), &says);
            let value = show(part.value);
            if to - from > text_width(&value) + 6.0 {
                svg.text((from + to) / 2.0, y + BAR * 0.68, "middle", "inside", &value);
            }
            sum += part.value;
        }
        svg.text(axis.at(sum) + 8.0, y + BAR * 0.68, "start", "label strong", &show(sum));
    }
    svg.line((left, 6.0), (left, bottom), "axis");
    svg.text((left + WIDTH - room) / 2.0, bottom + 37.0, "middle", "axis-label", axis_label);
    svg.finish()
}

/// A line of a chart.
pub struct Series {
    /// What it is.
    pub label: String,
    /// Points by rising x.
    pub points: Vec<(f64, f64)>,
    /// How many neighbours a point is averaged with; if more than 1, the points themselves are
    /// drawn faintly.
    pub average_of: usize,
}

/// What the axes of a line chart are.
pub struct Axes<'a> {
    /// Label of the x axis with its unit.
    pub x: &'a str,
    /// Label of the y axis with its unit.
    pub y: &'a str,
    /// How x values lie.
    pub x_scale: Scale,
    /// Writes an x value at its tick.
    pub x_tick: &'a dyn Fn(f64) -> String,
    /// How y values lie.
    pub y_scale: Scale,
    /// The least y range.
    pub y_range: Option<(f64, f64)>,
}

/// Lines over a common x.
pub fn lines(title: &str, axes: &Axes<'_>, series: &[Series]) -> String {
    const HEIGHT: f64 = 330.0;
    const LEFT: f64 = 66.0;
    const BOTTOM: f64 = HEIGHT - 50.0;
    let points = || series.iter().flat_map(|s| s.points.iter());
    let (x_low, x_high) = range(points().map(|p| p.0));
    let (mut y_low, mut y_high) = range(points().map(|p| p.1));
    if let Some((low, high)) = axes.y_range {
        (y_low, y_high) = (y_low.min(low), y_high.max(high));
    }
    let x = match axes.x_scale {
        Scale::Linear => Axis::linear(x_low.min(0.0), x_high, LEFT, WIDTH - 20.0),
        Scale::Log => Axis::log(x_low, x_high, LEFT, WIDTH - 20.0),
    };
    let y = match axes.y_scale {
        Scale::Linear => Axis::linear(y_low, y_high, BOTTOM, 14.0),
        Scale::Log => Axis::log(y_low, y_high, BOTTOM, 14.0),
    };
    let mut svg = Svg::new(WIDTH, HEIGHT, title);
    for value in y.ticks() {
        svg.line((LEFT, y.at(value)), (WIDTH - 20.0, y.at(value)), "grid");
        svg.text(LEFT - 8.0, y.at(value) + 4.0, "end", "tick", &tick(value));
    }
    for value in x.ticks() {
        svg.line((x.at(value), 14.0), (x.at(value), BOTTOM), "grid");
        svg.text(x.at(value), BOTTOM + 18.0, "middle", "tick", &(axes.x_tick)(value));
    }
    svg.line((LEFT, BOTTOM), (WIDTH - 20.0, BOTTOM), "axis");
    for (i, series) in series.iter().enumerate() {
        let place =
            |points: &[(f64, f64)]| -> Vec<(f64, f64)> { points.iter().map(|p| (x.at(p.0), y.at(p.1))).collect() };
        if series.average_of > 1 {
            svg.path(&place(&series.points), &format!("faint line{}", i % LINES), &series.label);
        }
        let smooth = place(&averaged(&series.points, series.average_of));
        svg.path(&smooth, &format!("line line{} dash{}", i % LINES, i % 4), &series.label);
    }
    svg.text((LEFT + WIDTH - 20.0) / 2.0, HEIGHT - 10.0, "middle", "axis-label", axes.x);
    svg.upright(16.0, (14.0 + BOTTOM) / 2.0, "axis-label", axes.y);
    svg.finish()
}

/// Each point with the mean of the `n` points around it; fewer at the ends.
fn averaged(points: &[(f64, f64)], n: usize) -> Vec<(f64, f64)> {
    let half = n / 2;
    (0..points.len())
        .map(|i| {
            // As many on either side, so that the ends do not lean.
            let reach = half.min(i).min(points.len() - 1 - i);
            let window = &points[i - reach..=i + reach];
            (points[i].0, window.iter().map(|p| p.1).sum::<f64>() / window.len() as f64)
        })
        .collect()
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        values.filter(|v| v.is_finite()).fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    if low > high { (0.0, 1.0) } else { (low, high) }
}

/// Columns from `from` up to and including `to`.
pub struct Column {
    /// Lowest value.
    pub from: f64,
    /// Highest value.
    pub to: f64,
    /// How many.
    pub count: f64,
}

/// One histogram below the other, on common axes.
pub fn histograms(title: &str, x_label: &str, y_label: &str, panels: &[(String, Vec<Column>)]) -> String {
    const PANEL: f64 = 120.0;
    const LEFT: f64 = 66.0;
    let columns = || panels.iter().flat_map(|(_, columns)| columns.iter());
    let (low, high) = range(columns().flat_map(|c| [c.from, c.to + 1.0]));
    let most = columns().map(|c| c.count).fold(0.0, f64::max);
    let x = Axis::linear(low, high, LEFT, WIDTH - 20.0);
    let height = PANEL * panels.len() as f64;
    let mut svg = Svg::new(WIDTH, height + 50.0, title);
    for (i, (label, columns)) in panels.iter().enumerate() {
        let (top, bottom) = (PANEL * i as f64 + 24.0, PANEL * (i + 1) as f64);
        let y = Axis::linear(0.0, most, bottom, top);
        for value in y.ticks().into_iter().step_by(2) {
            svg.line((LEFT, y.at(value)), (WIDTH - 20.0, y.at(value)), "grid");
            svg.text(LEFT - 8.0, y.at(value) + 4.0, "end", "tick", &tick(value));
        }
        for column in columns {
            let (from, to) = (x.at(column.from), x.at(column.to + 1.0));
            let says = format!("{label}: {} blocks erased {} to {} times", column.count, column.from, column.to);
            let class = format!("bar{}", i % LINES);
            svg.rect(
                from + 0.5,
                y.at(column.count),
                (to - from - 1.0).max(0.8),
                bottom - y.at(column.count),
                &class,
                &says,
            );
        }
        svg.line((LEFT, bottom), (WIDTH - 20.0, bottom), "axis");
        svg.text(WIDTH - 22.0, top - 8.0, "end", "label strong", label);
    }
    for value in x.ticks().into_iter().filter(|value| value.fract() == 0.0) {
        svg.text(x.at(value), height + 18.0, "middle", "tick", &tick(value));
    }
    svg.text((LEFT + WIDTH - 20.0) / 2.0, height + 40.0, "middle", "axis-label", x_label);
    svg.upright(16.0, height / 2.0, "axis-label", y_label);
    svg.finish()
}

/// Names beside their fills.
pub fn fill_legend(entries: &[(usize, String)]) -> String {
    legend(
        entries
            .iter()
            .map(|(fill, label)| (format!("<rect width=\"22\" height=\"12\" class=\"fill{}\"/>", fill % FILLS), label)),
    )
}

/// Names beside their lines.
pub fn line_legend(labels: &[String]) -> String {
    legend(
        labels.iter().enumerate().map(|(i, label)| {
            (format!("<path d=\"M0 6L28 6\" class=\"line line{} dash{}\"/>", i % LINES, i % 4), label)
        }),
    )
}

fn legend<'a>(entries: impl Iterator<Item = (String, &'a String)>) -> String {
    let items: String = entries
        .map(|(sample, label)| {
            let label = super::svg::escape(label);
            format!("<li><svg class=\"sample\" viewBox=\"0 0 28 12\" aria-hidden=\"true\">{sample}</svg>{label}</li>\n")
        })
        .collect();
    format!("<ul class=\"legend\">\n{items}</ul>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_its_parts_and_total() {
        let parts = [1.0, 0.855].into_iter().enumerate();
        let parts = parts.map(|(fill, value)| Part { fill, label: format!("p{fill}"), value }).collect();
        let svg = bars("t", "x", &[Bar { label: "page".into(), parts }], &|v| format!("{v:.3}"));
        assert!(svg.contains("page: p1 0.855"));
        assert!(svg.contains(">1.855</text>"));
        assert_eq!(svg.matches("<rect").count(), 2);
    }

    #[test]
    fn averages_keep_the_ends_and_flatten_swings() {
        let points: Vec<(f64, f64)> = (0..5).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let smooth = averaged(&points, 3);
        assert_eq!((smooth[0], smooth[4]), ((0.0, 0.0), (4.0, 0.0)));
        assert!((smooth[2].1 - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(averaged(&points, 1), points);
    }

    #[test]
    fn empty_charts_are_still_drawn() {
        let axes = Axes { x: "x", y: "y", x_scale: Scale::Log, x_tick: &tick, y_scale: Scale::Linear, y_range: None };
        for svg in [lines("t", &axes, &[]), bars("t", "x", &[], &|v| v.to_string()), histograms("t", "x", "y", &[])] {
            assert!(svg.starts_with("<svg") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
