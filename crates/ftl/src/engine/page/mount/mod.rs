//! Mounts of page-mapped FTLs: one for each way in which mapping table and validity are kept.
//!
//! | table | validity | mount |
//! |---|---|---|
//! | in RAM | any store | every spare area is read, and the store written anew ([`scan`]) |
//! | translation pages | bitmap in RAM | spare areas of young blocks, and every translation page ([`flat`]) |
//! | translation pages | Logarithmic Gecko | spare areas of young blocks, and what the store lost is reported again ([`reports`]) |
//! | B-tree in flash | any store | spare areas of leaves, and every leaf; the store is written anew ([`tree`]) |
//!
//! What is read without writing is in [`crate::recovery`]; a mount puts an engine together from it,
//! and settles what power loss left in doubt before anything else is programmed.

mod flat;
mod reports;
mod scan;
mod tree;

pub use scan::mount_by_scan_over_store;
pub use tree::mount_tree_over_store;

use super::{Flash, Lpn, Nand, PageFtl, PageOptions, Plan, Space, site};
