//! The rate that an FTL sustains.
//!
//! A rate is sustained if requests that arrive at it are done at it: else the queue grows for as
//! long as the run lasts. What closed loops get is an upper bound, found first. It is not the rate:
//! under some FTLs fewer requests are done the more of them wait.

use crate::spec::HostMode;
use serde::Serialize;

/// Clients of the closed loops of which the fastest bounds the rate that an FTL sustains.
pub const CLIENTS: [u32; 3] = [32, 128, 1024];

/// Requests in the device at once where they arrive at random.
const OUTSTANDING: u32 = 1024;

/// A rate is sustained if so large a share of it is done.
pub const KEEPS_UP: f64 = 0.97;

/// Rates that are tried after the bound: each halves what is left between two of them.
const HALVINGS: usize = 5;

/// Rates that are tried at most.
pub const TRIED_MAX: usize = 1 + HALVINGS;

/// A rate that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// Requests that arrived a second.
    pub per_s: f64,
    /// Requests that were done a second.
    pub done_per_s: f64,
    /// Nearly all of them were.
    pub keeps_up: bool,
}

/// So many clients of a closed loop, each with one request at a time.
#[must_use]
pub const fn closed(clients: u32) -> HostMode {
    HostMode::Closed { queue_depth: clients, think_ns: 0 }
}

/// Requests that arrive at random, so many a second.
#[must_use]
pub const fn at_random(per_s: f64) -> HostMode {
    HostMode::Poisson { per_s, outstanding: OUTSTANDING }
}

/// Tries rates up to `bound`, what closed loops got. `run` says how many requests were done a
/// second where so many arrived.
///
/// # Errors
/// Those of `run`.
pub fn try_rates<E>(bound: f64, mut run: impl FnMut(f64) -> Result<f64, E>) -> Result<Vec<Tried>, E> {
    let mut tried: Vec<Tried> = Vec::with_capacity(TRIED_MAX);
    let (mut least, mut most, mut per_s) = (0.0, bound, bound);
    for _ in 0..TRIED_MAX {
        let done_per_s = run(per_s)?;
        let keeps_up = done_per_s >= KEEPS_UP * per_s;
        tried.push(Tried { per_s, done_per_s, keeps_up });
        match keeps_up {
            true if per_s >= bound => break,
            true => least = per_s,
            false => most = per_s,
        }
        per_s = f64::midpoint(least, most);
    }
    Ok(tried)
}

/// The largest rate tried that was sustained, requests a second; 0 if none was.
#[must_use]
pub fn largest(tried: &[Tried]) -> f64 {
    tried.iter().filter(|tried| tried.keeps_up).map(|tried| tried.per_s).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::convert::Infallible;

    fn tried(bound: f64, most: f64) -> Vec<Tried> {
        try_rates(bound, |per_s| Ok::<f64, Infallible>(per_s.min(most))).unwrap()
    }

    #[test]
    fn a_bound_that_is_sustained_is_the_rate() {
        assert_eq!(tried(800.0, 800.0), [Tried { per_s: 800.0, done_per_s: 800.0, keeps_up: true }]);
    }

    #[test]
    fn halving_comes_close_to_the_rate_from_below() {
        let tried = tried(800.0, 500.0);
        assert_eq!(tried.len(), TRIED_MAX);
        let rate = largest(&tried);
        assert!((500.0 - 800.0 / 32.0..=500.0 / KEEPS_UP).contains(&rate), "{rate}");
        assert_eq!(largest(&tried[..1]), 0.0, "the bound alone was not sustained");
    }
}
