//! Charts of figures, for a page and as files of their own.

use crate::report::html::CSS;
use crate::report::html::charts::{self, Axes};
use crate::report::html::svg::{Scale, escape, tick};
use papers::units::short;
use papers::{Chart, Lines};

/// Part of the file's name.
pub fn name(chart: &Chart) -> &str {
    match chart {
        Chart::Lines(lines) => &lines.name,
        Chart::Bars { name, .. } => name,
    }
}

/// What it shows.
pub fn title(chart: &Chart) -> &str {
    match chart {
        Chart::Lines(lines) => &lines.title,
        Chart::Bars { title, .. } => title,
    }
}

/// The chart without its legend.
fn body(chart: &Chart) -> String {
    match chart {
        Chart::Lines(lines) => line_chart(lines),
        Chart::Bars { title, axis, bars, .. } => {
            let labels = labels(chart);
            let fill = |label: &str| labels.iter().position(|l| l == label).unwrap_or(0);
            let bars: Vec<charts::Bar> = bars
                .iter()
                .map(|bar| charts::Bar {
                    label: bar.label.clone(),
                    parts: bar
                        .parts
                        .iter()
                        .map(|part| charts::Part {
                            fill: fill(&part.label),
                            label: part.label.clone(),
                            value: part.value,
                        })
                        .collect(),
                })
                .collect();
            charts::bars(title, axis, &bars, &short)
        }
    }
}

fn line_chart(lines: &Lines) -> String {
    let scale = |log| if log { Scale::Log } else { Scale::Linear };
    let axes = Axes {
        x: &lines.x,
        y: &lines.y,
        x_scale: scale(lines.log_x),
        x_tick: &tick,
        y_scale: scale(lines.log_y),
        // A line from a positive origin would make small differences look large.
        y_range: (!lines.log_y).then_some((0.0, 0.0)),
    };
    let series: Vec<charts::Series> = lines
        .series
        .iter()
        .map(|series| charts::Series { label: series.label.clone(), points: series.points.clone(), average_of: 1 })
        .collect();
    charts::lines(&lines.title, &axes, &series)
}

/// What the legend names, in order.
fn labels(chart: &Chart) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    match chart {
        Chart::Lines(lines) => labels.extend(lines.series.iter().map(|series| series.label.clone())),
        Chart::Bars { bars, .. } => {
            for part in bars.iter().flat_map(|bar| &bar.parts) {
                if !labels.contains(&part.label) {
                    labels.push(part.label.clone());
                }
            }
        }
    }
    labels
}

/// The chart and its legend as HTML.
pub fn figure(chart: &Chart) -> String {
    let labels = labels(chart);
    let legend = match chart {
        Chart::Lines(_) => charts::line_legend(&labels),
        Chart::Bars { .. } => charts::fill_legend(&labels.into_iter().enumerate().collect::<Vec<_>>()),
    };
    format!("<figure>\n{}{legend}</figure>\n", body(chart))
}

const ROW: f64 = 22.0;

/// The chart with title and legend as an SVG that needs nothing else.
pub fn file(chart: &Chart) -> String {
    let body = body(chart);
    let height = view_height(&body);
    let (width, top) = (charts::WIDTH, 30.0);
    let labels = labels(chart);
    let mut rows = String::new();
    for (i, label) in labels.iter().enumerate() {
        let (x, y) = (20.0 + (width / 2.0) * (i % 2) as f64, top + height + 8.0 + ROW * (i / 2) as f64);
        let sample = match chart {
            Chart::Lines(_) => {
                format!("<path d=\"M{x} {} h28\" class=\"line line{} dash{}\"/>", y + 6.0, i % charts::LINES, i % 4)
            }
            Chart::Bars { .. } => {
                format!("<rect x=\"{x}\" y=\"{y}\" width=\"22\" height=\"12\" class=\"fill{}\"/>", i % charts::FILLS)
            }
        };
        rows.push_str(&format!("{sample}<text x=\"{}\" y=\"{}\">{}</text>\n", x + 36.0, y + 11.0, escape(label)));
    }
    let total = top + height + 16.0 + ROW * labels.len().div_ceil(2) as f64;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {total}\" width=\"{width}\" \
         height=\"{total}\">\n<style>\n{CSS}</style>\n<rect width=\"100%\" height=\"100%\" style=\"fill: var(--panel)\"/>\n\
         <text x=\"20\" y=\"20\" class=\"label strong\">{}</text>\n{}{rows}</svg>\n",
        escape(title(chart)),
        body.replacen("<svg ", &format!("<svg y=\"{top}\" width=\"{width}\" height=\"{height}\" "), 1),
    )
}

/// The height that an element's `viewBox` gives.
fn view_height(svg: &str) -> f64 {
    let numbers = svg.split("viewBox=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    numbers.split(' ').nth(3).and_then(|height| height.parse().ok()).unwrap_or(330.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use papers::{Bar, Part, Series};

    fn samples() -> [Chart; 2] {
        let points = vec![(1.0, 0.01), (2.0, 1.1)];
        let series = vec![Series { label: "a & b".into(), points }];
        [
            Chart::Lines(Lines { title: "t".into(), log_y: true, log_x: true, series, ..Lines::default() }),
            Chart::Bars {
                name: "b".into(),
                title: "t".into(),
                axis: "MiB".into(),
                bars: vec![Bar { label: "x".into(), parts: vec![Part::new("p", 1.0), Part::new("q", 2.0)] }],
            },
        ]
    }

    #[test]
    fn a_file_is_one_whole_element_with_its_legend() {
        for chart in samples() {
            let file = file(&chart);
            assert!(file.starts_with("<svg xmlns=") && file.trim_end().ends_with("</svg>"));
            assert_eq!(file.matches("<svg").count(), file.matches("</svg>").count());
            assert!(!file.contains("NaN") && !file.contains("a & b"), "{file}");
            assert!(labels(&chart).iter().all(|label| file.contains(&escape(label))));
        }
    }

    #[test]
    fn the_height_is_read_from_the_view() {
        assert_eq!(view_height("<svg viewBox=\"0 0 820 330\" role=\"img\">"), 330.0);
    }
}
