//! Whole runs.

mod arrivals;
mod common;
mod link;
mod part_reads;
mod runs;
mod write_buffer;
mod wrong;
