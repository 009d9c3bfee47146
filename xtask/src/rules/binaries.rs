//! Integration tests of a crate are one binary, and every file of it is compiled.

use crate::tree::{Finding, Tree};
use anyhow::Result;

/// Checks each file in a crate's folder `tests`.
pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut before: Option<(&str, &str)> = None;
    for path in tree.rust.keys() {
        let Some((root, inside)) = path.split_once("/tests/").filter(|(root, _)| is_crate(root)) else { continue };
        let (main, module) = match inside.trim_end_matches(".rs").split_once('/') {
            None => (path.clone(), None),
            Some((folder, "main")) => (format!("{root}/tests/{folder}/main.rs"), None),
            Some((folder, module)) => (format!("{root}/tests/{folder}/main.rs"), module.split('/').next()),
        };
        match (module, tree.files.get(&main)) {
            (Some(module), Some(text)) if !declares(text, module) => {
                findings.push(Finding::new(path, 1, format!("never compiled: {main} lacks `mod {module};`")));
            }
            (None, _) => {
                if let Some((_, first)) = before.filter(|(other, _)| *other == root) {
                    let message = format!("a second test binary of {root}: make it a module beside {first}");
                    findings.push(Finding::new(path, 1, message));
                }
                before = Some((root, path));
            }
            _ => {}
        }
    }
    Ok(findings)
}

fn is_crate(root: &str) -> bool {
    root.strip_prefix("crates/").is_some_and(|name| !name.contains('/'))
}

fn declares(text: &str, module: &str) -> bool {
    text.lines().any(|line| line.trim() == format!("mod {module};"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[&str]) -> usize {
        let all: Vec<(&str, &str)> = [("crates/a/tests/all/main.rs", "mod laws;\n")]
            .into_iter()
            .chain(files.iter().map(|path| (*path, "fn f() {}")))
            .collect();
        check(&Tree::sample(&all)).unwrap().len()
    }

    #[test]
    fn every_file_is_a_module_of_its_binary() {
        assert_eq!(found(&["crates/a/tests/all/laws.rs", "crates/a/tests/all/laws/deep.rs"]), 0);
        assert_eq!(found(&["crates/a/tests/all/wear.rs"]), 1);
    }

    #[test]
    fn a_crate_has_one_test_binary() {
        assert_eq!(found(&["crates/b/tests/one.rs", "crates/a/src/x/tests/mod.rs"]), 0);
        assert_eq!(found(&["crates/a/tests/one.rs"]), 1);
        assert_eq!(found(&["crates/b/tests/one.rs", "crates/b/tests/two.rs"]), 1);
    }
}
