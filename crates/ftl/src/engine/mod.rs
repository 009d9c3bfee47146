//! The engines: what turns parts into an FTL.

pub mod page;
