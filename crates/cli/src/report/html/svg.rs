//! SVG text: escaping, axes with round ticks, nothing that knows what is drawn.

use crate::units::trimmed;
use std::fmt::Write as _;

/// Escapes a text for HTML and SVG.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// How values lie along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm.
    Log,
}

/// An axis: values from `low` to `high` along `from` to `to` in user units.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    scale: Scale,
}

impl Axis {
    /// A linear axis, its ends moved outward to round numbers.
    pub fn linear(low: f64, high: f64, from: f64, to: f64) -> Self {
        let step = round_step(high - low);
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { low, high: if high > low { high } else { low + step }, from, to, scale: Scale::Linear }
    }

    /// A logarithmic axis of positive values, its ends moved outward to 1, 2 or 5 times a power of
    /// ten.
    pub fn log(low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = low.max(1e-3);
        let power = |v: f64| 10_f64.powf(v.log10().floor());
        let below = [5.0, 2.0, 1.0].into_iter().map(|m| m * power(low)).find(|v| *v <= low * 1.001).unwrap_or(low);
        let above = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power(high)).find(|v| *v >= high * 0.999);
        let high = above.filter(|high| *high > below * 1.5).unwrap_or(below * 10.0);
        Self { low: below, high, from, to, scale: Scale::Log }
    }

    /// Where a value lies.
    pub fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Values worth a line.
    pub fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = round_step(self.high - self.low);
                let n = ((self.high - self.low) / step).round() as u32;
                (0..=n).map(|i| self.low + f64::from(i) * step).collect()
            }
            Scale::Log => {
                let decades = (self.high / self.low).log10();
                let within: &[f64] = if decades < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
                let all = (first..=last).flat_map(|e| within.iter().map(move |m| m * 10_f64.powi(e)));
                all.filter(|v| *v >= self.low * 0.999 && *v <= self.high * 1.001).collect()
            }
        }
    }
}

/// A step of 1, 2 or 5 times a power of ten that divides a span into about five.
fn round_step(span: f64) -> f64 {
    if !span.is_finite() || span <= 0.0 {
        return 1.0;
    }
    let raw = span / 5.0;
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * power >= raw * 0.999).unwrap_or(10.0);
    step * power
}

/// A number at a tick: no more digits than needed.
pub fn tick(value: f64) -> String {
    let prefixes = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    let (divisor, prefix) = prefixes.into_iter().find(|(d, _)| value.abs() >= *d).unwrap_or((1.0, ""));
    format!("{}{prefix}", trimmed(value / divisor))
}

/// An SVG being written.
pub struct Svg {
    body: String,
    width: f64,
    height: f64,
    title: String,
}

impl Svg {
    /// A drawing of this size, with a title for those who cannot see it.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self { body: String::new(), width, height, title: title.to_owned() }
    }

    /// A filled rectangle that says what it is when pointed at.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str, says: &str) {
        let says = escape(says);
        self.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"{class}\">\
             <title>{says}</title></rect>"
        ));
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.push(format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// A line through points.
    pub fn path(&mut self, points: &[(f64, f64)], class: &str, says: &str) {
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            // Writing to a String cannot fail.
            let _ = write!(d, "{}{x:.1} {y:.1}", if i == 0 { "M" } else { "L" });
        }
        let says = escape(says);
        self.push(format_args!("<path d=\"{d}\" class=\"{class}\"><title>{says}</title></path>"));
    }

    /// A text anchored at `start`, `middle` or `end`.
    pub fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let text = escape(text);
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        ));
    }

    /// A text read from below.
    pub fn upright(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escape(text);
        self.push(format_args!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\" class=\"{class}\">{text}\
             </text>"
        ));
    }

    fn push(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(arguments);
        self.body.push('\n');
    }

    /// The finished element.
    pub fn finish(self) -> String {
        let title = escape(&self.title);
        format!(
            "<svg viewBox=\"0 0 {:.0} {:.0}\" role=\"img\" aria-label=\"{title}\">\n{}</svg>\n",
            self.width, self.height, self.body
        )
    }
}

/// The width that a text takes in the charts' font, on the safe side.
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let axis = Axis::linear(0.0, 2.21, 0.0, 100.0);
        assert_eq!(axis.ticks(), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
        assert_eq!((axis.at(0.0), axis.at(2.5)), (0.0, 100.0));
        let log = Axis::log(30.0, 40_000.0, 0.0, 100.0);
        assert_eq!(log.ticks(), [100.0, 1000.0, 10_000.0]);
        assert_eq!((log.at(20.0), log.at(50_000.0)), (0.0, 100.0));
    }

    #[test]
    fn flat_and_empty_ranges_do_not_break_an_axis() {
        for (low, high) in [(0.0, 0.0), (5.0, 5.0), (1.0, 1.0 + 1e-12)] {
            let axis = Axis::linear(low, high, 0.0, 1.0);
            assert!(axis.at(low).is_finite() && axis.ticks().len() < 20, "{low} {high}");
        }
    }

    #[test]
    fn numbers_and_texts_are_plain() {
        assert_eq!(tick(0.5), "0.5");
        assert_eq!(tick(2_000_000.0), "2 M");
        assert_eq!(tick(25_000.0), "25 k");
        assert_eq!(tick(0.1 + 0.2), "0.3");
        assert_eq!(escape("<a & 'b'>"), "&lt;a &amp; &#39;b&#39;&gt;");
    }
}
