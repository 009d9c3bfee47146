//! Whole runs.

mod common;
mod runs;
mod wrong;
