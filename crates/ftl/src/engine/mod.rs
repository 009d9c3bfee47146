//! The engines: what turns parts into an FTL.

pub mod core;
pub mod page;
pub mod space;
