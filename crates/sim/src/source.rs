//! Where requests come from.

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Forget bytes.
    Trim,
    /// Make durable.
    Flush,
}

/// A host request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Arrival, nanoseconds from the start.
    pub at_ns: u64,
    /// What is asked.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u32,
}

/// A stream of requests.
pub trait Source {
    /// Fills `out` from its start and says how many; 0 at the end.
    fn fill(&mut self, out: &mut [Request]) -> usize;
}
