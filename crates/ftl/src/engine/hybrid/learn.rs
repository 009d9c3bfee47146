//! The utilisation of victims, learned while blocks are collected, where the paper has one equation
//! for every workload (its section 7 names other equations as what comes next).
//!
//! 1. Every collection says how full its victim was (u), at what utilisation of the area the model
//!    says of it (u_d). Of both an exponentially weighted average is kept.
//! 2. The curve of equation 5 is bent through that point: u = (equation 5)^b. The ends stay where
//!    they are: an empty area has empty victims, a full one full ones. With b = 1 it is the
//!    paper's.
//!
//! One point and one parameter: what is learned at one size says something of every other.

use super::cost::{ln, victim_utilisation};

/// What a collection weighs in the averages.
const WEIGHT: f64 = 1.0 / 256.0;

/// The sharpest bends, either way: a point close to the ends of the curve says little of the rest.
const BENDS: (f64, f64) = (0.125, 8.0);

/// What collections told.
#[derive(Clone, Copy, Debug)]
pub struct Learned {
    over_provisioned: f64,
    /// u_d and u; `None` before the first collection.
    averages: Option<(f64, f64)>,
}

impl Learned {
    /// Nothing is known yet of an area with so many over-provisioned blocks.
    #[must_use]
    pub fn new(over_provisioned: u32) -> Self {
        Self { over_provisioned: f64::from(over_provisioned.max(1)), averages: None }
    }

    /// A block was collected of which the share `victim` lived, while so many logical blocks were
    /// fused.
    pub fn collected(&mut self, fused: u32, victim: f64) {
        debug_assert!((0.0..=1.0).contains(&victim), "a victim of which {victim} lived");
        let area = f64::from(fused) / (self.over_provisioned + f64::from(fused));
        let (old_area, old_victim) = self.averages.unwrap_or((area, victim));
        let average = |old: f64, new: f64| old + (new - old) * WEIGHT;
        self.averages = Some((average(old_area, area), average(old_victim, victim)));
    }

    /// b: 1 before anything was learned; more where victims are emptier than equation 5 says.
    #[must_use]
    pub fn bend(&self) -> f64 {
        let Some((area, victim)) = self.averages else { return 1.0 };
        // An end of the curve is on every bend.
        let inside = |share: f64| share.clamp(1e-3, 1.0 - 1e-3);
        (ln(inside(victim)) / ln(inside(victim_utilisation(inside(area))))).clamp(BENDS.0, BENDS.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::hybrid::cost::CostModel;

    #[test]
    fn the_curve_goes_through_what_was_seen_and_follows_it() {
        let mut learned = Learned::new(20);
        assert!((learned.bend() - 1.0).abs() < 1e-12);
        for (u, collections) in [(0.2, 1), (0.7, 3000), (0.4, 3000)] {
            (0..collections).for_each(|_| learned.collected(60, u));
            let costs = CostModel::paper().costs_bent(60.0, 20.0, learned.bend());
            assert!((costs.victim_utilisation - u).abs() < 1e-3, "{costs:?} for {u}");
            assert!((costs.area_utilisation - 0.75).abs() < 1e-12);
        }
    }

    #[test]
    fn what_equation_5_says_bends_nothing() {
        let mut learned = Learned::new(20);
        let (straight, paper) = (CostModel::paper().costs(60.0, 20.0), victim_utilisation(0.75));
        (0..10).for_each(|_| learned.collected(60, paper));
        let costs = CostModel::paper().costs_bent(60.0, 20.0, learned.bend());
        assert!((costs.defusion_us - straight.defusion_us).abs() < 1e-6, "{costs:?} for {straight:?}");
    }

    #[test]
    fn extremes_stay_finite() {
        for (fused, u) in [(0, 0.0), (1, 1.0), (u32::MAX, 0.0), (u32::MAX, 1.0), (60, 0.0), (60, 1.0)] {
            let mut learned = Learned::new(0);
            learned.collected(fused, u);
            let costs = CostModel::paper().costs_bent(60.0, 20.0, learned.bend());
            assert!((0.0..1.0).contains(&costs.victim_utilisation) && costs.defusion_us.is_finite(), "{costs:?}");
        }
    }

    #[test]
    fn full_victims_of_a_full_area_bend_little() {
        let mut learned = Learned::new(1);
        learned.collected(u32::MAX, 1.0);
        assert!((0.3..3.0).contains(&learned.bend()), "{}", learned.bend());
    }

    #[test]
    fn an_area_without_over_provisioning_counts_as_one_with_a_block() {
        let [mut none, mut one] = [Learned::new(0), Learned::new(1)];
        none.collected(3, 0.5);
        one.collected(3, 0.5);
        assert!((none.bend() - one.bend()).abs() < 1e-12);
        let mut two = Learned::new(2);
        two.collected(3, 0.5);
        assert!((two.bend() - one.bend()).abs() > 1e-3);
    }
}
