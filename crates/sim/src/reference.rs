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

#[cfg(test)]
mod tests {
    use super::*;

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
