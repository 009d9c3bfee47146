//! Time that this thread had a processor: what a rate of the simulator is about, whatever else the
//! computer does.

use std::time::Instant;

/// The kernel counts at its ticks, of up to 10 ms: a shorter time than this says nothing.
const SHORTEST_NS: u64 = 100_000_000;

/// Measures from its making on, in the thread that made it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    begun: Instant,
    /// `None` where the system does not tell.
    on_processor_ns: Option<u64>,
}

impl Stopwatch {
    /// Begins to measure.
    pub(crate) fn start() -> Self {
        Self { begun: Instant::now(), on_processor_ns: on_processor_ns() }
    }

    /// Seconds on a wall clock.
    pub(crate) fn wall_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Things done per second that the thread had a processor, or per second of the wall clock
    /// where the system does not tell, or the time is too short for its count; 0 if no time has
    /// passed.
    pub(crate) fn rate(&self, things: u64) -> f64 {
        let on_processor = self.on_processor_ns.zip(on_processor_ns()).map(|(begun, now)| now.saturating_sub(begun));
        let seconds = match on_processor {
            Some(ns) if ns >= SHORTEST_NS => ns as f64 / 1e9,
            _ => self.wall_s(),
        };
        if seconds > 0.0 { things as f64 / seconds } else { 0.0 }
    }
}

/// How long this thread had a processor so far.
fn on_processor_ns() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// `342390360 914489410 105`: on a processor and waiting for one, ns, and how often. All zeros
/// where the kernel keeps no such count.
fn parse(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok().filter(|ns| *ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_the_time() {
        assert_eq!(parse("342390360 914489410 105\n"), Some(342_390_360));
        assert_eq!((parse("0 0 0\n"), parse("")), (None, None));
    }

    #[test]
    fn a_thread_that_computes_has_a_rate() {
        let watch = Stopwatch::start();
        let sum = (0..10_000_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        std::hint::black_box(sum);
        assert!(watch.rate(10_000_000) > 0.0 && watch.wall_s() > 0.0);
    }
}
