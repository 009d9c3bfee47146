//! Recorded traces, found by name in the lab's folder.

use crate::lab::Lab;
use sim::SimError;
use std::fs;
use std::path::{Path, PathBuf};
use workload::trace::{self, OpenOptions, Trace};

/// The trace whose file's name begins with one of `starts`, the best first.
///
/// `None` if the lab has none of them.
///
/// # Errors
/// [`SimError::Workload`] if the folder or the trace cannot be read.
pub fn recorded(lab: &Lab, starts: &[&str]) -> Result<Option<Trace>, SimError> {
    let Some(folder) = &lab.traces else { return Ok(None) };
    let Some(path) = named(folder, starts)? else { return Ok(None) };
    trace::open(&path, &OpenOptions::default()).map(Some).map_err(|error| failed(&path, &error.to_string()))
}

/// Traces by the names of their files, and what is in the lab's folder that is none.
pub type AllRecorded = (Vec<(String, Trace)>, Vec<String>);

/// Every trace of the lab's folder, so many requests of each at most.
///
/// # Errors
/// [`SimError::Workload`] if the folder cannot be read.
pub fn all_recorded(lab: &Lab, requests: u64) -> Result<AllRecorded, SimError> {
    let (mut traces, mut others) = (Vec::new(), Vec::new());
    let Some(folder) = &lab.traces else { return Ok((traces, others)) };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, &error.to_string()))? {
        paths.push(entry.map_err(|error| failed(folder, &error.to_string()))?.path());
    }
    paths.sort();
    for path in paths.iter().filter(|path| path.is_file()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match trace::open(path, &OpenOptions { limit: Some(requests), ..OpenOptions::default() }) {
            Ok(trace) => traces.push((name, trace)),
            Err(error) => others.push(format!("{name} is not played: {error}")),
        }
    }
    Ok((traces, others))
}

/// The file of the best matching name; of several the largest.
fn named(folder: &Path, starts: &[&str]) -> Result<Option<PathBuf>, SimError> {
    let cannot = |error: &std::io::Error| failed(folder, &error.to_string());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| cannot(&error))? {
        let entry = entry.map_err(|error| cannot(&error))?;
        let bytes = entry.metadata().map_err(|error| cannot(&error))?.len();
        files.push((entry.file_name().to_string_lossy().to_lowercase(), bytes, entry.path()));
    }
    let beginning = |start: &&str| {
        let of = files.iter().filter(|(name, ..)| name.starts_with(*start));
        of.max_by_key(|(name, bytes, _)| (*bytes, name.clone())).map(|(.., path)| path.clone())
    };
    Ok(starts.iter().find_map(beginning))
}

fn failed(path: &Path, reason: &str) -> SimError {
    SimError::Workload { workload: path.display().to_string(), reason: reason.to_owned() }
}
