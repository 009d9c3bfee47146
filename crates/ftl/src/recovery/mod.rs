//! Recovery strategies: how an FTL comes back after power loss.

pub mod checkpoint;
pub mod copies;
pub mod mark;
pub mod scan;
pub mod survey;
