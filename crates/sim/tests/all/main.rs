//! Whole runs.

mod arrivals;
mod common;
mod part_reads;
mod link;
mod runs;
mod write_buffer;
mod wrong;
