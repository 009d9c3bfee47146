//! The requests of the measured part, until there have been enough.

use crate::error::SimError;
use crate::result::HostResult;
use crate::source::{Request, Source};
use crate::spec::{RunSpec, WorkloadContext};

/// Requests fetched at once.
const FETCH: usize = 1024;
/// Requests announced together in timed runs.
const AHEAD: usize = 32;
/// A run that asks for W writes ends also after this many times W pages read or trimmed, so that a
/// workload that hardly writes ends.
const OTHER_PAGES_A_WRITE: u64 = 64;

/// Hands out requests in batches.
pub(crate) struct Feed {
    source: Box<dyn Source>,
    workload: String,
    buffer: Vec<Request>,
    from: usize,
    len: usize,
    writes: u64,
    requests_left: u64,
}

impl Feed {
    pub(crate) fn new(spec: &RunSpec, context: &WorkloadContext) -> Result<Self, SimError> {
        Ok(Self {
            source: (spec.workload.make)(context)?,
            workload: spec.workload.name.clone(),
            buffer: vec![Request::default(); FETCH],
            from: 0,
            len: 0,
            writes: spec.writes,
            requests_left: if spec.requests == 0 { u64::MAX } else { spec.requests },
        })
    }

    /// Whether requests carry their arrival times.
    pub(crate) fn timed(&self) -> bool {
        self.source.timed()
    }

    /// Pages to be written; 0 if the source decides.
    pub(crate) const fn writes_wanted(&self) -> u64 {
        self.writes
    }

    /// Pages to be written.
    pub(crate) const fn writes_goal(&self) -> u64 {
        if self.writes == 0 { u64::MAX } else { self.writes }
    }

    /// Sees to it that there is a request to hand out; `false` if there have been enough, or there
    /// are no more.
    pub(crate) fn fetch(&mut self, done: &HostResult) -> Result<bool, SimError> {
        let others = done.reads + done.trims;
        if done.writes >= self.writes_goal() || (self.writes > 0 && others / OTHER_PAGES_A_WRITE >= self.writes) {
            return Ok(false);
        }
        if self.from == self.len {
            let wanted = self.requests_left.min(FETCH as u64) as usize;
            let got = self
                .source
                .fill(&mut self.buffer[..wanted])
                .map_err(|e| SimError::Workload { workload: self.workload.clone(), reason: e.to_string() })?;
            self.from = 0;
            self.len = got;
            self.requests_left -= got as u64;
        }
        Ok(self.from < self.len)
    }

    /// Requests fetched and not yet consumed.
    pub(crate) fn ready(&self) -> &[Request] {
        &self.buffer[self.from..self.len]
    }

    /// The first `count` of them are done.
    pub(crate) fn consume(&mut self, count: usize) {
        self.from += count;
        debug_assert!(self.from <= self.len);
    }

    /// Requests that follow the one handed out last, every [`AHEAD`] requests; in between, none.
    pub(crate) fn ahead(&self) -> &[Request] {
        if self.from % AHEAD == 1 { &self.buffer[self.from..self.len.min(self.from + AHEAD)] } else { &[] }
    }

    /// The next request alone.
    pub(crate) fn next(&mut self, done: &HostResult) -> Result<Option<Request>, SimError> {
        if !self.fetch(done)? {
            return Ok(None);
        }
        let request = self.buffer[self.from];
        self.from += 1;
        Ok(Some(request))
    }
}
