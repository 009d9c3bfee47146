//! The text files of the repository, held in memory so that a rule can be tried on a sample.

use crate::facts::{self, Facts};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Folders that hold nothing written by hand.
const SKIPPED_FOLDERS: [&str; 4] = [".git", "target", "node_modules", "__pycache__"];

/// One thing that a rule objects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// File, relative to the root.
    pub path: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl Finding {
    /// A finding.
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

/// Every text file, by its path relative to the root, and what each Rust file says.
pub struct Tree {
    /// Contents by path, separated by `/`.
    pub files: BTreeMap<String, String>,
    /// Facts of each Rust file, by path.
    pub rust: BTreeMap<String, Facts>,
}

impl Tree {
    /// Reads the tree on disk.
    pub fn read(root: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        collect(root, "", &mut files)?;
        Self::new(files)
    }

    /// A tree of given files.
    pub fn new(files: BTreeMap<String, String>) -> Result<Self> {
        let mut rust = BTreeMap::new();
        for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
            rust.insert(path.clone(), facts::of(path, text).with_context(|| format!("{path} does not parse"))?);
        }
        let mut tree = Self { files, rust };
        tree.mark_test_modules();
        Ok(tree)
    }

    /// A tree of samples, for the rules' own tests.
    #[cfg(test)]
    pub fn sample(files: &[(&str, &str)]) -> Self {
        Self::new(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()).unwrap()
    }

    /// A module declared `#[cfg(test)] mod x;` is test code though its own file does not say so.
    fn mark_test_modules(&mut self) {
        let mut test_files = BTreeSet::new();
        for (path, facts) in &self.rust {
            for module in &facts.test_modules {
                let folder = module_folder(path);
                test_files.insert(format!("{folder}/{module}.rs"));
                test_files.insert(format!("{folder}/{module}/mod.rs"));
            }
        }
        for path in test_files {
            if let Some(facts) = self.rust.get_mut(&path) {
                facts.mark_all_as_test();
            }
        }
    }
}

/// The folder in which the modules that a file declares lie.
fn module_folder(path: &str) -> String {
    let stem = path.trim_end_matches(".rs");
    match stem.rsplit_once('/') {
        Some((folder, "mod" | "lib" | "main")) => folder.to_owned(),
        _ => stem.to_owned(),
    }
}

fn collect(root: &Path, relative: &str, files: &mut BTreeMap<String, String>) -> Result<()> {
    let folder = root.join(relative);
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if relative.is_empty() { name.clone() } else { format!("{relative}/{name}") };
        if entry.file_type()?.is_dir() {
            if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                collect(root, &path, files)?;
            }
        } else if let Ok(text) = String::from_utf8(fs::read(entry.path())?) {
            files.insert(path, text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_lie_beside_mod_and_below_a_file() {
        assert_eq!(module_folder("crates/a/src/lib.rs"), "crates/a/src");
        assert_eq!(module_folder("crates/a/src/b/mod.rs"), "crates/a/src/b");
        assert_eq!(module_folder("crates/a/src/b.rs"), "crates/a/src/b");
    }

    #[test]
    fn an_outlined_test_module_is_test_code() {
        let tree = Tree::sample(&[
            ("crates/a/src/lib.rs", "#[cfg(test)] mod laws; mod real;"),
            ("crates/a/src/laws.rs", "fn f() { g().unwrap(); }"),
            ("crates/a/src/real.rs", "fn f() { g().unwrap(); }"),
        ]);
        assert!(tree.rust["crates/a/src/laws.rs"].calls[0].in_test);
        assert!(!tree.rust["crates/a/src/real.rs"].calls[0].in_test);
    }
}
