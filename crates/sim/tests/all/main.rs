//! Whole runs.

mod arrivals;
mod common;
mod part_reads;
mod runs;
mod wrong;
