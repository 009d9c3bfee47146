//! Where requests come from.

/// Why.
pub type WorkloadError = String;

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Op {
    /// Read bytes.
    Read,
    /// Write bytes.
    #[default]
    Write,
    /// Forget bytes.
    Trim,
    /// Make durable.
    Flush,
}

impl Op {
    /// Lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Flush => "flush",
        }
    }
}

/// A host request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Arrival, nanoseconds from the start.
    pub at_ns: u64,
    /// What is asked.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// A stream of requests.
pub trait Source: Send {
    /// Fills `out` from its start and says how many; 0 at the end.
    ///
    /// # Errors
    /// Those of the source.
    fn fill(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError>;

    /// Whether `at_ns` means anything.
    fn timed(&self) -> bool;

    /// What it is, in a line.
    fn describe(&self) -> String;
}
