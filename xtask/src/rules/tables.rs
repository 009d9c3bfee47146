//! Every file in the folder of a table stands in the table.

use crate::tree::{Finding, Tree};
use anyhow::Result;

/// Folders with one file a row.
const FOLDERS: [&str; 7] = [
    "crates/ftl/src/ftls",
    "crates/ftl/src/victim",
    "crates/ftl/src/placement",
    "crates/ftl/src/validity",
    "crates/sim/src/reproduce/figures",
    "crates/workload/src/synthetic",
    "crates/workload/src/trace/formats",
];

/// Files in those folders that several rows share, and what they are.
const SHARED: [(&str, &str); 3] = [
    ("crates/ftl/src/victim/lists.rs", "blocks linked by valid count, for several policies"),
    ("crates/ftl/src/validity/check.rs", "check values, for every store that is found again after power loss"),
    ("crates/workload/src/trace/formats/fields.rs", "columns of text, for every text format"),
];

/// Checks each folder that is there.
pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for folder in FOLDERS {
        let table = format!("{folder}/mod.rs");
        let Some(facts) = tree.rust.get(&table) else { continue };
        for (path, row) in tree.rust.iter().filter(|(path, _)| path.starts_with(&format!("{folder}/"))) {
            let inside = &path[folder.len() + 1..];
            let name = inside.trim_end_matches(".rs").split('/').next().unwrap_or_default();
            let shared = SHARED.iter().any(|(file, _)| file == path) || facts.test_modules.iter().any(|m| m == name);
            if name == "mod" || shared || inside.contains('/') || holds_only_tests(row) {
                continue;
            }
            if !facts.path_heads.iter().any(|at| at.what == name && !at.in_test) {
                findings.push(Finding::new(path, 1, format!("not in the table of {table}: add its row")));
            }
        }
    }
    Ok(findings)
}

fn holds_only_tests(facts: &crate::facts::Facts) -> bool {
    facts.idents.iter().all(|at| at.in_test)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(table: &str) -> usize {
        let files = [("crates/ftl/src/victim/mod.rs", table), ("crates/ftl/src/victim/fifo.rs", "pub fn pick() {}")];
        check(&Tree::sample(&files)).unwrap().len()
    }

    #[test]
    fn a_file_stands_in_its_table() {
        assert_eq!(found("mod fifo; const TABLE: [Entry; 1] = [fifo::ENTRY];"), 0);
        assert_eq!(found("mod fifo;"), 1);
        assert_eq!(found(""), 1);
        assert_eq!(found("mod fifo; #[cfg(test)] mod tests { fn t() { fifo::pick(); } }"), 1);
    }

    #[test]
    fn tests_beside_a_table_need_no_row() {
        let files =
            [("crates/ftl/src/ftls/mod.rs", "#[cfg(test)] mod laws;"), ("crates/ftl/src/ftls/laws.rs", "fn f() {}")];
        assert_eq!(check(&Tree::sample(&files)).unwrap(), []);
    }
}
