//! Where a server says what happened.

use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Nothing is wrong.
    Note,
    /// Something is wrong with a client, or could go wrong.
    Warning,
    /// Data cannot be read, written or kept.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Takes lines of a log, from any thread.
pub trait Log: Send + Sync {
    /// Takes a line without its end.
    fn line(&self, severity: Severity, text: &str);
}

/// Throws every line away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Log for Silent {
    fn line(&self, _: Severity, _: &str) {}
}
