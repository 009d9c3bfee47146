//! Whole runs.

mod arrivals;
mod common;
mod ftl_time;
mod link;
mod part_reads;
mod runs;
mod write_buffer;
mod wrong;
