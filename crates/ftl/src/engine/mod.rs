//! The engines: what turns parts into an FTL.

pub mod janus;
pub mod log_block;
pub mod page;
pub mod read_only;
pub mod superblock;
