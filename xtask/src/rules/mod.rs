//! The rules that `cargo xtask tidy` enforces: one file and one row each.

mod binaries;
mod cycles;
mod layers;
mod lengths;
mod links;
mod tables;
mod words;

use crate::tree::{Finding, Tree};
use anyhow::Result;

/// One rule.
pub struct Rule {
    /// Its name, printed with each finding.
    pub name: &'static str,
    /// Looks through the tree.
    pub check: fn(&Tree) -> Result<Vec<Finding>>,
}

/// Every rule, in the order they run.
pub const TABLE: [Rule; 9] = [
    Rule { name: "lengths", check: lengths::check },
    Rule { name: "crate-layers", check: layers::crates },
    Rule { name: "module-cycles", check: cycles::check },
    Rule { name: "ftl-layers", check: layers::inside_ftl },
    Rule { name: "parts-name-no-ftl", check: layers::parts_name_no_ftl },
    Rule { name: "tables", check: tables::check },
    Rule { name: "test-binaries", check: binaries::check },
    Rule { name: "words", check: words::check },
    Rule { name: "links", check: links::check },
];
