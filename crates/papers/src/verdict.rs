//! Whether a claim holds: computed from values, with the margin.

use crate::units::short;
use serde::Serialize;
use std::cmp::Ordering;

/// What a paper claims and what came out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The claim, in a sentence.
    pub claim: String,
    /// The paper's figure, as it gives it.
    pub paper: String,
    /// Our figure, measured unless it says otherwise.
    pub ours: String,
    /// What the paper's formulas give, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    /// Whether the claim holds.
    pub holds: bool,
    /// By how much it holds or fails.
    pub margin: String,
    /// Why it does not hold, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A named value.
pub type Named<'a> = (&'a str, f64);

impl Verdict {
    fn new(claim: &str, paper: &str, holds: bool, ours: String, margin: String) -> Self {
        Self { claim: claim.to_owned(), paper: paper.to_owned(), ours, formula: None, holds, margin, why: None }
    }

    /// `part` is at least `percent`% below `whole`.
    #[must_use]
    pub fn below_by(claim: &str, part: Named<'_>, whole: Named<'_>, percent: f64) -> Self {
        let below = if whole.1 > 0.0 { (1.0 - part.1 / whole.1) * 100.0 } else { f64::NAN };
        let ours = format!("{below:.1}% ({} {}, {} {})", part.0, short(part.1), whole.0, short(whole.1));
        let margin = beside(below, percent, "%");
        Self::new(claim, &format!("at least {}%", short(percent)), below >= percent, ours, margin)
    }

    /// `value` is `limit` or more. `unit` follows the numbers.
    #[must_use]
    pub fn at_least(claim: &str, paper: &str, value: f64, limit: f64, unit: &str) -> Self {
        let margin = beside(value, limit, unit);
        Self::new(claim, paper, value >= limit, format!("{}{unit}", short(value)), margin)
    }

    /// `value` is `limit` or less. `unit` follows the numbers.
    #[must_use]
    pub fn at_most(claim: &str, paper: &str, value: f64, limit: f64, unit: &str) -> Self {
        let margin = beside(value, limit, unit);
        Self::new(claim, paper, value <= limit, format!("{}{unit}", short(value)), margin)
    }

    /// `value` is from `low` to `high`. `unit` follows the numbers.
    #[must_use]
    pub fn between(claim: &str, paper: &str, value: f64, (low, high): (f64, f64), unit: &str) -> Self {
        let holds = value >= low && value <= high;
        let nearer = if (value - low).abs() < (value - high).abs() { low } else { high };
        Self::new(claim, paper, holds, format!("{}{unit}", short(value)), beside(value, nearer, unit))
    }

    /// `value` is within `percent`% of `wanted`.
    #[must_use]
    pub fn near(claim: &str, paper: &str, value: f64, wanted: f64, percent: f64) -> Self {
        let off = if wanted == 0.0 { f64::NAN } else { (value / wanted - 1.0) * 100.0 };
        let margin = format!("{}% off, {}% allowed", signed(off, 1), short(percent));
        Self::new(claim, paper, off.abs() <= percent, short(value), margin)
    }

    /// The value named `name` is the least of all.
    #[must_use]
    pub fn least(claim: &str, paper: &str, values: &[Named<'_>], name: &str) -> Self {
        let ours =
            values.iter().map(|(name, value)| format!("{name} {}", short(*value))).collect::<Vec<_>>().join(", ");
        let wanted = values.iter().find(|(n, _)| *n == name).map_or(f64::NAN, |(_, value)| *value);
        let others = values.iter().filter(|(n, _)| *n != name);
        let next = others.min_by(|a, b| a.1.total_cmp(&b.1)).copied().unwrap_or(("nothing", f64::NAN));
        let percent = if wanted == 0.0 { 0.0 } else { (next.1 / wanted - 1.0) * 100.0 };
        let by = if wanted == 0.0 { short(next.1) } else { signed(percent, 1) + "%" };
        let margin = format!("the least of the others, {}, differs from it by {by}", next.0);
        Self::new(claim, paper, wanted < next.1, ours, margin)
    }

    /// The values rise from each to the next.
    #[must_use]
    pub fn rising(claim: &str, paper: &str, values: &[Named<'_>]) -> Self {
        let ours =
            values.iter().map(|(name, value)| format!("{name} {}", short(*value))).collect::<Vec<_>>().join(", ");
        let stop = values.windows(2).find(|pair| !matches!(pair[1].1.partial_cmp(&pair[0].1), Some(Ordering::Greater)));
        let margin = match stop {
            Some(pair) => format!("does not rise from {} to {}", pair[0].0, pair[1].0),
            None => match (values.first(), values.last()) {
                (Some(first), Some(last)) => format!("{} times from first to last", short(last.1 / first.1)),
                _ => "nothing to compare".to_owned(),
            },
        };
        Self::new(claim, paper, stop.is_none() && values.len() > 1, ours, margin)
    }

    /// y grows with the logarithm of x: that line fits better than a line over x, and it rises.
    #[must_use]
    pub fn logarithmic(claim: &str, paper: &str, points: &[(f64, f64)]) -> Self {
        let by_log: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.log2(), *y)).collect();
        let ((slope, log), (_, linear)) = (fit(&by_log), fit(points));
        let ours = format!("{} for each doubling", signed(slope, 5));
        let margin = format!("R² {log:.4} against log x, {linear:.4} against x");
        Self::new(claim, paper, slope > 0.0 && log > linear, ours, margin)
    }

    /// Adds what the paper's formulas give.
    #[must_use]
    pub fn with_formula(mut self, formula: String) -> Self {
        self.formula = Some(formula);
        self
    }

    /// Says why the claim does not hold, if it does not.
    #[must_use]
    pub fn unless_holds(mut self, why: &str) -> Self {
        if !self.holds {
            self.why = Some(why.to_owned());
        }
        self
    }

    /// `holds` or `does not hold`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        if self.holds { "holds" } else { "does not hold" }
    }
}

/// Slope and R² of the least-squares line through points; R² is 0 if they do not vary.
fn fit(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    let syy: f64 = points.iter().map(|p| (p.1 - my).powi(2)).sum();
    if sxx <= 0.0 || syy <= 0.0 { (0.0, 0.0) } else { (sxy / sxx, sxy * sxy / (sxx * syy)) }
}

/// On which side of a limit a value is, and how far.
fn beside(value: f64, limit: f64, unit: &str) -> String {
    let side = if value < limit { "below" } else { "above" };
    format!("{} {side} the limit of {}{unit}", short((value - limit).abs()), short(limit))
}

fn signed(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:+.digits$}") } else { "nothing".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_has_two_outcomes() {
        let pairs = [
            (
                Verdict::below_by("c", ("a", 2.0), ("b", 100.0), 98.0),
                Verdict::below_by("c", ("a", 3.0), ("b", 100.0), 98.0),
            ),
            (Verdict::at_least("c", "p", 4.0, 4.0, "x"), Verdict::at_least("c", "p", 3.9, 4.0, "x")),
            (Verdict::at_most("c", "p", 4.0, 4.0, "x"), Verdict::at_most("c", "p", 4.1, 4.0, "x")),
            (Verdict::between("c", "p", 2.0, (2.0, 3.0), "s"), Verdict::between("c", "p", 1.9, (2.0, 3.0), "s")),
            (Verdict::between("c", "p", 3.0, (2.0, 3.0), "s"), Verdict::between("c", "p", 3.1, (2.0, 3.0), "s")),
            (Verdict::near("c", "p", 7100.0, 7200.0, 10.0), Verdict::near("c", "p", 6000.0, 7200.0, 10.0)),
            (
                Verdict::least("c", "p", &[("2", 1.0), ("4", 2.0)], "2"),
                Verdict::least("c", "p", &[("2", 1.0), ("4", 0.9)], "2"),
            ),
            (
                Verdict::rising("c", "p", &[("a", 1.0), ("b", 1.1)]),
                Verdict::rising("c", "p", &[("a", 1.0), ("b", 1.0)]),
            ),
        ];
        for (yes, no) in pairs {
            assert!(yes.holds && !no.holds, "{yes:?} {no:?}");
            assert_ne!(yes.margin, no.margin);
        }
    }

    #[test]
    fn growth_is_told_apart() {
        let xs = [1.0_f64, 2.0, 4.0, 8.0, 16.0];
        let log: Vec<(f64, f64)> = xs.iter().map(|x| (*x, 3.0 + 0.1 * x.ln())).collect();
        let linear: Vec<(f64, f64)> = xs.iter().map(|x| (*x, 3.0 + 0.1 * x)).collect();
        let falling: Vec<(f64, f64)> = xs.iter().map(|x| (*x, 3.0 - 0.1 * x.ln())).collect();
        assert!(Verdict::logarithmic("c", "p", &log).holds);
        assert!(!Verdict::logarithmic("c", "p", &linear).holds);
        assert!(!Verdict::logarithmic("c", "p", &falling).holds);
    }

    #[test]
    fn nothing_to_compare_never_holds() {
        for verdict in [
            Verdict::below_by("c", ("a", 0.0), ("b", 0.0), 98.0),
            Verdict::least("c", "p", &[], "2"),
            Verdict::least("c", "p", &[("2", 1.0)], "2"),
            Verdict::rising("c", "p", &[("2", 1.0)]),
            Verdict::logarithmic("c", "p", &[]),
            Verdict::near("c", "p", 1.0, 0.0, 10.0),
            Verdict::between("c", "p", f64::NAN, (0.0, 1.0), ""),
            Verdict::rising("c", "p", &[("2", 1.0), ("4", f64::NAN)]),
        ] {
            assert!(!verdict.holds, "{verdict:?}");
        }
    }

    #[test]
    fn why_is_said_only_when_it_does_not_hold() {
        assert_eq!(Verdict::at_most("c", "p", 1.0, 2.0, "").unless_holds("w").why, None);
        assert_eq!(Verdict::at_most("c", "p", 3.0, 2.0, "").unless_holds("w").why.as_deref(), Some("w"));
    }
}
