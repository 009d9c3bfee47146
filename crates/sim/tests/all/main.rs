//! Whole runs.

mod arrivals;
mod common;
mod runs;
mod write_buffer;
mod wrong;
