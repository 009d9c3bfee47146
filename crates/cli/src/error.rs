//! What went wrong, and whose turn it is: the exit code tells a usage error (2) from a failure (1).
//!
//! A usage error is one that the command line alone shows: an unknown name, a value out of range,
//! options that contradict each other, an FTL that the chosen device cannot carry. Whatever depends
//! on files or on the run is a failure.

use papers::PaperError;
use sim::SimError;
use std::fmt;
use std::io;
use workload::WorkloadError;

/// An error that a different command line avoids.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A usage error.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(message.into()))
}

/// The exit code for an error.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let by_usage = error.chain().any(|cause| {
        cause.is::<Usage>()
            || cause.downcast_ref::<WorkloadError>().is_some_and(workload_is_usage)
            || cause.downcast_ref::<SimError>().is_some_and(sim_is_usage)
            || cause.downcast_ref::<PaperError>().is_some_and(paper_is_usage)
    });
    if by_usage { 2 } else { 1 }
}

fn workload_is_usage(error: &WorkloadError) -> bool {
    matches!(
        error,
        WorkloadError::Unknown { .. }
            | WorkloadError::UnknownOption { .. }
            | WorkloadError::BadValue { .. }
            | WorkloadError::Syntax { .. }
            | WorkloadError::Contradiction { .. }
            | WorkloadError::SaidByFormat { .. }
            | WorkloadError::DoesNotFit { .. }
    )
}

fn sim_is_usage(error: &SimError) -> bool {
    match error {
        SimError::UnknownFtl { .. } | SimError::BadSpec { .. } | SimError::Geometry { .. } => true,
        SimError::Ftl { source, .. } => matches!(source, ftl::FtlError::Unsupported { .. }),
        _ => false,
    }
}

/// A figure's error passes the run's on as its own, so that the chain of causes does not hold it.
fn paper_is_usage(error: &PaperError) -> bool {
    matches!(error, PaperError::Sim(source) if sim_is_usage(source))
}

/// The error and its causes in a line, leaving out a cause that has been said already.
pub fn text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Whether the reader of our output has gone, which is no error.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    };
    error
        .chain()
        .any(|cause| io(cause) || matches!(cause.downcast_ref(), Some(WorkloadError::Io { source, .. }) if io(source)))
}

/// An error for a name that is not in a table: what exists, and what may have been meant.
pub fn unknown<'a>(what: &str, given: &str, known: impl IntoIterator<Item = &'a str>, list: &str) -> anyhow::Error {
    let known: Vec<&str> = known.into_iter().collect();
    let hint = hint(given, known.iter().copied());
    usage(format!("there is no {what} `{given}`{hint}; known are: {} (openftl list {list})", known.join(", ")))
}

/// An ending that suggests the known name that is nearest, if one is near.
pub fn hint<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let likeness = |name: &'a str| (strsim::jaro_winkler(&given.to_lowercase(), name), name);
    let near = known.into_iter().map(likeness).filter(|(likeness, _)| *likeness > 0.75);
    let nearest = near.max_by(|a, b| a.0.total_cmp(&b.0));
    nearest.map_or_else(String::new, |(_, name)| format!(", did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        let near = unknown("FTL", "gekco", ["page", "dftl", "gecko"], "ftls").to_string();
        assert!(near.contains("did you mean `gecko`?") && near.contains("page, dftl, gecko"), "{near}");
        assert!(!unknown("FTL", "zzz", ["page"], "ftls").to_string().contains("did you mean"));
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = Err::<(), _>(usage("no room")).context("page: no room").context("cannot run").unwrap_err();
        assert_eq!(text(&error), "cannot run: page: no room");
    }

    #[test]
    fn usage_survives_context() {
        let error = Err::<(), _>(usage("bad")).context("while reading").unwrap_err();
        assert_eq!(exit_code(&error), 2);
        assert_eq!(exit_code(&anyhow::anyhow!("failed")), 1);
        let gone = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("cannot write");
        assert!(is_broken_pipe(&gone));
    }
}
