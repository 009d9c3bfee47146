//! What theory says of write-amplification.

/// The live share of a collected block that the cleaning equation of log-structured file systems
/// predicts (Menon, 1995): the root below 1 of `ratio = (u − 1) / ln u`, for uniform random writes
/// and oldest-first cleaning.
///
/// `ratio` is logical over physical space. 0 for a ratio of 0 or less, 1 for 1 or more.
#[must_use]
pub fn lfs_live_share(ratio: f64) -> f64 {
    if ratio <= 0.0 {
        return 0.0;
    }
    if ratio >= 1.0 {
        return 1.0;
    }
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= 0.0 || (middle - 1.0) / middle.ln() < ratio {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Programs per host write that follow from [`lfs_live_share`]: `1 / (1 − u)`.
#[must_use]
pub fn lfs_write_amplification(ratio: f64) -> f64 {
    1.0 / (1.0 - lfs_live_share(ratio))
}

/// Pages that are written independently of each other, in classes of pages with the same rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// Pages of a class, and the share of all writes that goes to them.
    classes: Vec<(f64, f64)>,
    pages: f64,
}

impl Rates {
    /// Of classes of so many pages, to which these shares of all writes go. Classes without pages
    /// are left out. `None` if a number is negative or no number, or if nothing is written.
    #[must_use]
    pub fn new(classes: &[(f64, f64)]) -> Option<Self> {
        let sane = |value: f64| value.is_finite() && value >= 0.0;
        let (pages, writes) = classes.iter().fold((0.0, 0.0), |(n, p), class| (n + class.0, p + class.1));
        if !classes.iter().all(|class| sane(class.0) && sane(class.1)) || pages <= 0.0 || writes <= 0.0 {
            return None;
        }
        let with_pages = classes.iter().filter(|class| class.0 > 0.0);
        Some(Self { classes: with_pages.map(|(n, p)| (*n, p / writes)).collect(), pages })
    }

    /// Programs for each write of the host in one log that is cleaned oldest first, what is moved
    /// going to its head with what is written. `spare` is the space beyond that of the pages, over
    /// it.
    ///
    /// A page with rate p that is not written during the time T that the log takes to turn over is
    /// moved: p / (exp(pT) - 1) times for each write of the host. T is the physical space over the
    /// programs for each write (Desnoyers, SYSTOR 2012, for two rates).
    #[must_use]
    pub fn one_log(&self, spare: f64) -> f64 {
        let space = self.pages * (1.0 + spare);
        let moved = |turn: f64| -> f64 {
            self.classes.iter().filter(|class| class.1 > 0.0).map(|(n, p)| p / (p / n * turn).exp_m1()).sum()
        };
        bisect(1.0, 1e9, |programs| 1.0 + moved(space / programs) > programs)
    }

    /// Programs for each write if every class has a log of its own, with the split of the spare
    /// space that makes them fewest: the reference for every placement that does not know when
    /// pages will be written.
    ///
    /// With y = -ln u a log of live share u has 1 / (1 - u) programs for each write and y / (1 - u)
    /// times the space of its pages. The best split makes the gain by a page more of spare space
    /// the same in every log.
    #[must_use]
    pub fn separate_logs(&self, spare: f64) -> f64 {
        let live = |y: f64| (-y).exp();
        let space = |y: f64| y / -(-y).exp_m1();
        // Programs that a log saves for each write to it, for each page of space more per page.
        let gain = |y: f64| live(y) / (1.0 - live(y) - y * live(y));
        let log_of = |class: &(f64, f64), price: f64| {
            let (n, p) = class;
            // One that is never written needs no spare space.
            if *p > 0.0 { bisect(1e-9, 700.0, |y| gain(y) * p > price * n) } else { 1e-9 }
        };
        let used = |price: f64| -> f64 { self.classes.iter().map(|class| class.0 * space(log_of(class, price))).sum() };
        let wanted = self.pages * (1.0 + spare);
        let price = bisect(-60.0, 60.0, |exponent| used(exponent.exp() / self.pages) > wanted).exp() / self.pages;
        self.classes.iter().map(|class| class.1 / -(-log_of(class, price)).exp_m1()).sum()
    }
}

/// Where, between two values, what holds below holds no more.
fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 GB of pages of 4 KiB, on 8 GiB.
    const PAGES: f64 = 1_953_125.0;
    const SPARE: f64 = (1 << 21) as f64 / PAGES - 1.0;

    fn both(rates: &Rates, spare: f64) -> [String; 2] {
        [rates.one_log(spare), rates.separate_logs(spare)].map(|programs| format!("{programs:.2}"))
    }

    fn zipf(theta: f64) -> Rates {
        // Ranks in classes that grow by a 256th of their first.
        let (mut classes, mut first) = (Vec::new(), 1_u64);
        while first <= PAGES as u64 {
            let end = (first + (first / 256).max(1)).min(PAGES as u64 + 1);
            let share = (first..end).map(|rank| (rank as f64).powf(-theta)).sum::<f64>();
            classes.push(((end - first) as f64, share));
            first = end;
        }
        Rates::new(&classes).unwrap()
    }

    #[test]
    fn one_rate_needs_one_log() {
        let uniform = Rates::new(&[(PAGES, 1.0)]).unwrap();
        assert_eq!(both(&uniform, SPARE), ["7.46", "7.46"]);
        assert_eq!(both(&uniform, 0.28), ["2.48", "2.48"]);
        assert!((uniform.one_log(0.28) - lfs_write_amplification(1.0 / 1.28)).abs() < 1e-6);
    }

    #[test]
    fn two_rates_gain_by_two_logs() {
        let hot_cold = Rates::new(&[(0.1 * PAGES, 0.9), (0.9 * PAGES, 0.1)]).unwrap();
        assert_eq!(both(&hot_cold, SPARE), ["8.50", "3.14"]);
        assert_eq!(both(&hot_cold, 0.28), ["3.30", "1.41"]);
    }

    #[test]
    fn zipfs_law_gains_most_by_logs_of_their_own() {
        assert_eq!(both(&zipf(0.99), SPARE), ["11.38", "2.70"]);
        assert_eq!(both(&zipf(0.99), 0.28), ["3.77", "1.36"]);
    }

    #[test]
    fn pages_never_written_take_no_spare_space() {
        let half = Rates::new(&[(50.0, 1.0), (50.0, 0.0)]).unwrap();
        assert!((half.separate_logs(0.1) - lfs_write_amplification(1.0 / 1.2)).abs() < 1e-3);
        assert!(Rates::new(&[(1.0, f64::NAN)]).is_none() && Rates::new(&[(0.0, 1.0)]).is_none());
        assert!(Rates::new(&[(9.0, 0.0)]).is_none() && Rates::new(&[]).is_none());
    }

    #[test]
    fn the_root_solves_the_equation() {
        for ratio in [0.05, 0.3, 0.5, 0.7, 0.8, 0.95, 0.99] {
            let u = lfs_live_share(ratio);
            assert!(((u - 1.0) / u.ln() - ratio).abs() < 1e-9, "{ratio}: {u}");
        }
        assert_eq!(lfs_live_share(0.0), 0.0);
        assert_eq!(lfs_live_share(1.0), 1.0);
    }

    #[test]
    fn known_values() {
        // (0.5 - 1) / ln 0.5 = 0.721347…
        assert!((lfs_live_share(0.5 / core::f64::consts::LN_2) - 0.5).abs() < 1e-12);
        assert!((lfs_write_amplification(0.5 / core::f64::consts::LN_2) - 2.0).abs() < 1e-9);
    }
}
