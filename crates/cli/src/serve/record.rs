//! What clients asked of a served disk, as a trace.

use crate::output;
use anyhow::{Context, Result, bail};
use blockdev::nbd::{Observer, Seen};
use blockdev::stats;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use workload::trace::CsvWriter;
use workload::{Op, Request};

/// Writes requests to a file as they arrive.
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

struct Inner {
    path: PathBuf,
    begin: Instant,
    state: Mutex<State>,
}

struct State {
    writer: CsvWriter<BufWriter<File>>,
    /// Time of the last request: those of several connections meet here in any order.
    last_ns: u64,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

impl Recorder {
    /// Begins a trace in a new file.
    pub fn create(path: &Path, device: &str) -> Result<Self> {
        let cannot = || format!("cannot record to {}", path.display());
        let file = File::create_new(path).with_context(cannot)?;
        let writer = CsvWriter::new(BufWriter::new(file), device).with_context(cannot)?;
        let state = Mutex::new(State { writer, last_ns: 0, failed: None });
        Ok(Self(Arc::new(Inner { path: path.to_owned(), begin: Instant::now(), state })))
    }

    /// Ends the trace; an error if any of it is missing.
    pub fn finish(&self) -> Result<()> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.0.path.display();
        match state.failed.take() {
            Some(error) => bail!("{path} ends early: {error}"),
            None => state.writer.flush().with_context(|| format!("cannot write the end of {path}")),
        }
    }
}

impl Observer for Recorder {
    fn request(&self, seen: &Seen) {
        let op = match seen.op {
            stats::Op::Read => Op::Read,
            stats::Op::Flush => Op::Flush,
            _ if seen.forgets => Op::Trim,
            stats::Op::Write | stats::Op::Zero => Op::Write,
            _ => return,
        };
        if seen.bytes == 0 && op != Op::Flush {
            return;
        }
        let at_ns = seen.at.saturating_duration_since(self.0.begin).as_nanos() as u64;
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failed.is_some() {
            return;
        }
        let at_ns = at_ns.max(state.last_ns);
        state.last_ns = at_ns;
        let offset = if op == Op::Flush { 0 } else { seen.offset };
        let request = Request { at_ns, op, offset, bytes: seen.bytes.into(), fua: seen.fua && op == Op::Write };
        let flush = Request { at_ns, op: Op::Flush, offset: 0, bytes: 0, fua: false };
        let written = state.writer.request(&request).and_then(|()| match seen.fua && op == Op::Trim {
            true => state.writer.request(&flush),
            false => Ok(()),
        });
        if let Err(error) = written {
            output::complain(&format!("warning: recording to {} stops: {error}", self.0.path.display()));
            state.failed = Some(error);
        }
    }
}
