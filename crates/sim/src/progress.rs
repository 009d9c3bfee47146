//! How far a run has come.

/// Which part of a run is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Writing every page once.
    Fill,
    /// Overwriting until write-amplification is steady.
    Precondition,
    /// What is measured.
    Measure,
    /// Reading every page back.
    Verify,
}

/// How far a run has come. Given at most every 2^16 pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The part of the run.
    pub phase: Phase,
    /// Pages done in it.
    pub done: u64,
    /// Pages in it; 0 if not known.
    pub total: u64,
}

/// Passes progress on, but not too often.
pub struct Reporter<'a> {
    progress: &'a mut dyn FnMut(Progress),
    last: Option<(Phase, u64)>,
}

/// Pages between two reports.
const REPORT_EVERY: u64 = 1 << 16;

impl<'a> Reporter<'a> {
    /// Reports to `progress`.
    pub fn new(progress: &'a mut dyn FnMut(Progress)) -> Self {
        Self { progress, last: None }
    }

    /// Says how far a phase is; passed on at its first call, then every 2^16 pages.
    #[inline]
    pub fn at(&mut self, phase: Phase, done: u64, total: u64) {
        let due = match self.last {
            Some((last_phase, last_done)) => phase != last_phase || done >= last_done + REPORT_EVERY,
            None => true,
        };
        if due {
            self.last = Some((phase, done));
            (self.progress)(Progress { phase, done, total });
        }
    }
}
