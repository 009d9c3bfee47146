//! Recovery strategies: how an FTL comes back after power loss.

pub mod scan;
pub mod survey;
