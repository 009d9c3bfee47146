//! The engines: what turns parts into an FTL.

pub mod grouped;
pub mod hybrid;
pub mod log_block;
pub mod page;
pub mod read_only;
