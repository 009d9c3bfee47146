//! Whole runs.

mod arrivals;
mod common;
mod runs;
mod wrong;
