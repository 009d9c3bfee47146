//! The cost model of Janus-FTL (Kwon et al., EMSOFT 2010, section 4).
//!
//! 1. Collecting the emptiest block of the page-mapped area moves the share u of its pages that
//!    live: equation 1.
//! 2. A page written there pays its share of a collection: equation 2.
//! 3. Defusing a logical block copies it to an empty block and then makes another empty block:
//!    equation 3.
//! 4. With hit rate r, a write costs the sum of both, the second only if it missed: equation 4.
//! 5. The utilisation u of the emptiest block follows from that of the area, u_d = N_F / (N_O +
//!    N_F): equation 5.
//!
//! All times are microseconds. The core has no `ln`; this file brings its own.

/// Durations of the device's operations and its shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// N_P: pages in a block.
    pub pages_per_block: f64,
    /// C_E: one erase, µs.
    pub erase_us: f64,
    /// C_CP: one page copy, µs.
    pub copy_us: f64,
    /// C_PROG: one page program, µs.
    pub program_us: f64,
}

/// What operations of Janus-FTL cost at one size of the page-mapped area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// u_d: utilisation of the page-mapped area.
    pub area_utilisation: f64,
    /// u: utilisation of the block that is collected.
    pub victim_utilisation: f64,
    /// C_GC: one collection, µs.
    pub collection_us: f64,
    /// C_PW: one page write to the area, µs.
    pub page_write_us: f64,
    /// C_Defusion: one defusion, µs.
    pub defusion_us: f64,
}

impl CostModel {
    /// The device of the paper's examples and simulator (Figure 4).
    #[must_use]
    pub const fn paper() -> Self {
        Self { pages_per_block: 64.0, erase_us: 2000.0, copy_us: 225.0, program_us: 200.0 }
    }

    /// The costs with `fused` logical blocks (N_F) and `over_provisioned` blocks (N_O), both more
    /// than 0.
    #[must_use]
    pub fn costs(&self, fused: f64, over_provisioned: f64) -> Costs {
        self.costs_bent(fused, over_provisioned, 1.0)
    }

    /// The same where victims are as full as equation 5 says to the power of `bend`, which is more
    /// than 0.
    #[must_use]
    pub fn costs_bent(&self, fused: f64, over_provisioned: f64, bend: f64) -> Costs {
        let area_utilisation = fused / (over_provisioned + fused);
        debug_assert!(
            area_utilisation > 0.0 && area_utilisation < 1.0,
            "{fused} fused, {over_provisioned} over-provisioned"
        );
        let straight = victim_utilisation(area_utilisation);
        let u = if bend.to_bits() == 1.0_f64.to_bits() { straight } else { exp(bend * ln(straight)) };
        debug_assert!((0.0..1.0).contains(&u), "a victim of which {u} lives");
        let live = u * self.pages_per_block;
        let collection_us = live * self.copy_us + self.erase_us;
        let page_write_us = collection_us / ((1.0 - u) * self.pages_per_block) + self.program_us;
        let defusion_us = self.pages_per_block * self.copy_us + self.erase_us + live * page_write_us;
        Costs { area_utilisation, victim_utilisation: u, collection_us, page_write_us, defusion_us }
    }
}

impl Costs {
    /// C_avg: one write of the host at this hit rate, µs (equation 4).
    #[must_use]
    pub fn average_write_us(&self, hit_rate: f64) -> f64 {
        debug_assert!((0.0..=1.0).contains(&hit_rate), "a hit rate of {hit_rate}");
        (1.0 - hit_rate) * self.defusion_us + self.page_write_us
    }
}

/// The u for which u_d = (u - 1) / ln u, for a u_d between 0 and 1 (equation 5).
#[must_use]
pub fn victim_utilisation(area_utilisation: f64) -> f64 {
    // The right-hand side grows with u from 0 to 1.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if (middle - 1.0) / ln(middle) < area_utilisation { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The natural logarithm of a positive, normal number.
#[must_use]
pub fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0);
    // x = m * 2^e with m in [0.75, 1.5), then ln m = 2 artanh((m - 1) / (m + 1)).
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if m >= 1.5 {
        m /= 2.0;
        exponent += 1;
    }
    let z = (m - 1.0) / (m + 1.0);
    let (square, mut power, mut sum) = (z * z, z, 0.0);
    for n in 0..14 {
        sum += power / f64::from(2 * n + 1);
        power *= square;
    }
    2.0 * sum + f64::from(exponent) * core::f64::consts::LN_2
}

/// The exponential of a number that is not positive; 0 below -700.
#[must_use]
pub fn exp(x: f64) -> f64 {
    debug_assert!(x <= 0.0);
    if x < -700.0 {
        return 0.0;
    }
    // e^x = (e^(x / 2^10))^(2^10): so close to 0 a few terms are enough.
    let small = x / 1024.0;
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..17 {
        term *= small / f64::from(n);
        sum += term;
    }
    (0..10).fold(sum, |power, _| power * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_the_library_s() {
        for i in 1..100_000 {
            let x = f64::from(i) * 1e-4;
            assert!((ln(x) - x.ln()).abs() < 1e-13, "{x}: {} for {}", ln(x), x.ln());
        }
    }

    #[test]
    fn the_exponential_is_the_library_s() {
        for i in 0..70_000 {
            let x = -f64::from(i) * 1e-2;
            assert!((exp(x) - x.exp()).abs() <= 1e-11 * x.exp(), "{x}: {} for {}", exp(x), x.exp());
        }
    }

    #[test]
    fn gives_the_values_of_the_paper_s_parameters() {
        let table = [
            (20.0, 0.5, 0.2032, 296.6, 20_257.0),
            (60.0, 0.75, 0.5456, 538.9, 35_219.0),
            (200.0, 0.9091, 0.8239, 1429.9, 91_793.0),
        ];
        for (fused, u_d, u, page_write, defusion) in table {
            let costs = CostModel::paper().costs(fused, 20.0);
            assert!((costs.area_utilisation - u_d).abs() < 5e-5, "{costs:?}");
            assert!((costs.victim_utilisation - u).abs() < 5e-5, "{costs:?}");
            assert!((costs.page_write_us - page_write).abs() < 0.05, "{costs:?}");
            assert!((costs.defusion_us - defusion).abs() < 0.5, "{costs:?}");
            assert!((costs.average_write_us(1.0) - costs.page_write_us).abs() < 1e-9);
        }
    }

    #[test]
    fn with_locality_the_optimum_lies_between_the_extremes() {
        // A hit rate that soars and then levels off, as in Figure 4(a).
        let cost = |fused: u32| {
            let costs = CostModel::paper().costs(f64::from(fused), 20.0);
            costs.average_write_us(1.0 - (-f64::from(fused) / 20.0).exp())
        };
        let best = (1..1004).min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap();
        assert!((40..400).contains(&best), "{best}");
    }
}
