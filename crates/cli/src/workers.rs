//! Runs on several threads, with a bar for each on a terminal.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use sim::{Phase, Progress};
use std::io::{self, IsTerminal};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Runs at once may take so much memory together; one alone is never held back here.
const MEMORY_AT_ONCE: u64 = 12 << 30;

/// How many runs go on at once: as many as asked for or as there are processors, and fewer if each
/// takes much memory.
pub fn jobs(asked: Option<NonZeroU32>, bytes_each: u64) -> usize {
    let wanted = match asked {
        Some(jobs) => jobs.get() as usize,
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    wanted.min((MEMORY_AT_ONCE / bytes_each.max(1)) as usize).max(1)
}

/// The bars of runs on standard error, if that is a terminal; nothing otherwise.
pub struct Bars {
    all: MultiProgress,
    total: ProgressBar,
    begun: Instant,
    /// When a line was said last, if there is no terminal for bars.
    said: Option<Mutex<Instant>>,
}

/// Time between two lines where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

impl Bars {
    /// For so many runs.
    pub fn new(runs: usize) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let total = all.add(ProgressBar::new(runs as u64));
        // The template is a constant; were it malformed, the bar would keep its default.
        if let Ok(style) = ProgressStyle::with_template("{pos} of {len} runs done  {elapsed} gone, {eta} left") {
            total.set_style(style);
        }
        total.tick();
        let begun = Instant::now();
        let said = (!io::stderr().is_terminal()).then(|| Mutex::new(begun));
        Self { all, total, begun, said }
    }

    /// A run begins.
    pub fn begin(&self, name: &str) -> Bar<'_> {
        let bar = self.all.insert_before(&self.total, ProgressBar::new(1));
        if let Ok(style) =
            ProgressStyle::with_template("{prefix:>8}  {msg:<13} [{bar:36}] {percent:>3}%  {elapsed} gone, {eta} left")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(name.to_owned());
        Bar { bars: self, bar }
    }

    /// Prints a line above the bars.
    pub fn say(&self, line: &str) {
        self.all.suspend(|| crate::output::complain(line));
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.total.finish_and_clear();
    }
}

/// The bar of a run, until this is dropped.
pub struct Bar<'a> {
    bars: &'a Bars,
    bar: ProgressBar,
}

impl Bar<'_> {
    /// Shows how far the run is.
    pub fn show(&self, progress: Progress) {
        let phase = match progress.phase {
            Phase::Fill => "filling",
            Phase::Precondition => "ageing",
            Phase::Measure => "measuring",
            Phase::Verify => "reading back",
        };
        if let Some(said) = &self.bars.said {
            self.say_line(said, phase, progress);
            return;
        }
        if self.bar.message() != phase {
            // What is left is guessed from this part of the run alone.
            self.bar.reset_eta();
            self.bar.set_message(phase);
        }
        self.bar.set_length(progress.total.max(1));
        self.bar.set_position(progress.done.min(progress.total.max(1)));
    }
}

impl Bar<'_> {
    /// Says how far the run is, unless something was said a short time ago.
    fn say_line(&self, said: &Mutex<Instant>, phase: &str, progress: Progress) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.elapsed() < BETWEEN_LINES {
            return;
        }
        *said = Instant::now();
        let percent = (progress.done * 100).checked_div(progress.total).map_or_else(String::new, |p| format!(" {p}%"));
        crate::output::complain(&format!(
            "{}: {phase}{percent}; {} of {} runs done after {} s",
            self.bar.prefix(),
            self.bars.total.position(),
            self.bars.total.length().unwrap_or_default(),
            self.bars.begun.elapsed().as_secs()
        ));
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        self.bars.all.remove(&self.bar);
        self.bars.total.inc(1);
    }
}

/// Does `work` for each of `count` things on `jobs` threads, the first things first. What comes of
/// them is in their order.
pub fn in_parallel<T: Send>(count: usize, jobs: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(count));
    let go = || loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        if at >= count {
            return;
        }
        let result = work(at);
        done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
    };
    thread::scope(|scope| {
        for _ in 1..jobs.min(count) {
            scope.spawn(go);
        }
        go();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whatever_the_threads() {
        for jobs in [1, 2, 7] {
            assert_eq!(in_parallel(20, jobs, |at| at * at), (0..20).map(|at| at * at).collect::<Vec<_>>());
        }
        assert!(in_parallel(0, 4, |at| at).is_empty());
    }

    #[test]
    fn runs_that_take_much_memory_go_on_one_at_a_time() {
        assert_eq!((jobs(NonZeroU32::new(8), 1), jobs(NonZeroU32::new(8), 7 << 30), jobs(None, 1 << 40)), (8, 1, 1));
    }
}
