//! Documents written by the code they describe.

use crate::tree::{Finding, Tree};
use anyhow::{Context, Result};
use nand::SimNand;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The document of the FTLs.
const FTLS: &str = "docs/ftls.md";

/// Writes every generated document.
pub fn write(root: &Path) -> Result<()> {
    let path = root.join(FTLS);
    fs::write(&path, ftls()).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {FTLS}");
    Ok(())
}

/// Compares every generated document with what the code says now.
pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    Ok(stale(tree.files.get(FTLS).map(String::as_str), &ftls()).into_iter().collect())
}

fn stale(found: Option<&str>, wanted: &str) -> Option<Finding> {
    let found = found.unwrap_or_default();
    if found == wanted {
        return None;
    }
    let same = found.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count();
    Some(Finding::new(FTLS, same + 1, "not what the table of FTLs says now: run `cargo xtask docs`"))
}

/// The table of FTLs as a document.
fn ftls() -> String {
    let mut out = String::from(
        "# Flash translation layers\n\n\
         Written by `cargo xtask docs` from the table in `crates/ftl/src/ftls/mod.rs`; `openftl list ftls` prints the same.\n\n\
         | name | what it is | published in | cached map |\n\
         |---|---|---|---|\n",
    );
    for entry in ftl::ftls::table::<SimNand>() {
        let info = entry.info;
        let cached = if info.cached { "yes, `--cache`" } else { "no" };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "| `{}` | {} | {} | {cached} |", info.name, info.summary, info.source);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_document_is_found_at_its_first_different_line() {
        assert_eq!(stale(Some("a\nb\n"), "a\nb\n"), None);
        assert_eq!(stale(Some("a\nx\n"), "a\nb\n").map(|finding| finding.line), Some(2));
        assert_eq!(stale(None, "a\n").map(|finding| finding.line), Some(1));
    }

    #[test]
    fn every_ftl_has_a_row() {
        let text = ftls();
        for entry in ftl::ftls::table::<SimNand>() {
            assert!(text.contains(&format!("| `{}` |", entry.info.name)));
        }
    }
}
