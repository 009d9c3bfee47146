//! The copy of the tree: every file as it is, but for the mutated ones and what is put in.

use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;

/// Folders at the root, or in a package, that a build makes or does not need.
const SKIPPED: [&str; 2] = [".git", "target"];

/// The mutated crate's sources.
pub const SOURCES: &str = "crates/ftl/src";
/// Its folders that are mutated.
pub const FOLDERS: [&str; 5] = ["recovery", "engine", "space", "mapping", "validity"];

const SWITCH: &str = include_str!("../../mutants/inject/switch.rs");
const EXPLORER: &str = include_str!("../../mutants/inject/explorer.rs");
/// Where the explorer makes a failure small, which takes long and decides nothing here.
const SHRINK: (&str, &str) = ("crates/crash/src/shrink.rs", "shrink");

/// The copy and where it is built.
pub struct Copy {
    /// The tree that is copied.
    root: PathBuf,
    /// The copy.
    pub tree: PathBuf,
    /// What the compiler makes of it.
    pub target: PathBuf,
}

impl Copy {
    /// A copy of the tree below `root`, in `folder`. Files that are the same stay untouched, so
    /// that a build can be resumed.
    ///
    /// # Errors
    /// If files cannot be read or written.
    pub fn new(root: &Path, folder: &Path) -> Result<Self> {
        let copy = Self { root: root.to_owned(), tree: folder.join("tree"), target: folder.join("target") };
        let mut keep = BTreeSet::new();
        copy.take(Path::new(""), &mut keep)?;
        copy.put_in(&mut keep)?;
        prune(&copy.tree, Path::new(""), &keep)?;
        Ok(copy)
    }

    fn take(&self, folder: &Path, keep: &mut BTreeSet<PathBuf>) -> Result<()> {
        let from = self.root.join(folder);
        for entry in fs::read_dir(&from).with_context(|| format!("cannot list {}", from.display()))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() && !SKIPPED.iter().any(|name| entry.file_name() == *name) {
                self.take(&path, keep)?;
            } else if kind.is_file() {
                if !is_mutated(&path) && !path.starts_with(SHRINK.0) && path != Path::new(SOURCES).join("lib.rs") {
                    let bytes = fs::read(entry.path())?;
                    self.write(&path, &bytes)?;
                }
                keep.insert(path);
            }
        }
        Ok(())
    }

    fn put_in(&self, keep: &mut BTreeSet<PathBuf>) -> Result<()> {
        let lib = Path::new(SOURCES).join("lib.rs");
        let text = fs::read_to_string(self.root.join(&lib))?;
        self.write(&lib, format!("{text}\nmod mutant;\n").as_bytes())?;
        let text = fs::read_to_string(self.root.join(SHRINK.0)).with_context(|| format!("cannot read {}", SHRINK.0))?;
        self.write(Path::new(SHRINK.0), ended_at_shrink(&text)?.as_bytes())?;
        let explorer = Path::new("crates/crash/tests/mutant_explorer.rs");
        self.write(explorer, EXPLORER.as_bytes())?;
        keep.insert(explorer.to_owned());
        keep.insert(Path::new(SOURCES).join("mutant.rs"));
        Ok(())
    }

    /// Writes the switch, for mutants of numbers below `count`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_switch(&self, count: usize) -> Result<()> {
        let text = format!("{SWITCH}\nconst COUNT: usize = {count};\n");
        self.write(&Path::new(SOURCES).join("mutant.rs"), text.as_bytes())
    }

    /// Writes a file of the copy, unless it is like that already.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let path = self.tree.join(path);
        if fs::read(&path).is_ok_and(|before| before == bytes) {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Whether a file is one of those that are mutated.
pub fn is_mutated(path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(SOURCES) else { return false };
    FOLDERS.iter().any(|folder| inside.starts_with(folder))
        && inside.extension().is_some_and(|end| end == "rs")
        && !inside.iter().any(|part| part == "tests" || part == "tests.rs")
}

/// The explorer's shrinking with an end of the process as its first statement.
fn ended_at_shrink(text: &str) -> Result<String> {
    let (file, name) = SHRINK;
    let syntax = syn::parse_file(text).with_context(|| format!("{file} does not parse"))?;
    let function = syntax.items.iter().find_map(|item| match item {
        syn::Item::Fn(item) if item.sig.ident == name => Some(item),
        _ => None,
    });
    let Some(function) = function else {
        bail!("{file} has no function `{name}`; put right where a failure is shrunk in xtask/src/mutants/tree.rs")
    };
    let at = function.block.brace_token.span.open().span().byte_range().end;
    let end = "if std::env::var_os(\"OPENFTL_EXPLORER_FTL\").is_some() { std::process::exit(101) }";
    Ok(format!("{} {end}{}", &text[..at], &text[at..]))
}

fn prune(tree: &Path, folder: &Path, keep: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(tree.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            prune(tree, &path, keep)?;
        } else if !keep.contains(&path) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_other_folders_are_not_mutated() {
        let is = |path: &str| is_mutated(Path::new(path));
        assert!(is("crates/ftl/src/engine/page/collect.rs"));
        assert!(!is("crates/ftl/src/validity/gecko/tests/props.rs"));
        assert!(!is("crates/ftl/src/ftls/page.rs"));
        assert!(!is("crates/nand/src/engine/x.rs"));
    }

    #[test]
    fn the_explorer_ends_before_it_shrinks() {
        let text = ended_at_shrink("fn shrink(a: u8) -> u8 { a }").unwrap();
        assert!(text.starts_with("fn shrink(a: u8) -> u8 { if std::env"), "{text}");
        assert!(ended_at_shrink("fn other() {}").unwrap_err().to_string().contains("no function `shrink`"));
    }
}
