//! Recovery strategies: how an FTL comes back after power loss.

pub mod checkpoint;
pub mod copies;
pub mod leaves;
pub mod mark;
pub mod saved;
pub mod scan;
pub mod survey;
