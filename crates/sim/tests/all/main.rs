//! Whole runs.

mod arrivals;
mod common;
mod link;
mod runs;
mod write_buffer;
mod wrong;
