//! Words that do not belong in what others read, and calls that panic outside tests.

use crate::tree::{Finding, Tree};
use anyhow::Result;

/// This file, which has to name the words.
const SELF: &str = "xtask/src/rules/words.rs";

/// Marks of unfinished work, in any file of code or document.
const UNFINISHED: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// Macros that must not be merged.
const MACROS: [&str; 3] = ["dbg", "todo", "unimplemented"];

/// Words of one workplace, which mean nothing to a reader elsewhere.
const WORKPLACE: [&str; 8] =
    ["subagent", "sub-agent", "this session", "previous session", "/work/", "/root/", "../shared", "language model"];

/// Endings of the files whose every line is looked at.
const LOOKED_AT: [&str; 7] = [".rs", ".md", ".toml", ".py", ".sh", ".yml", ".ci/run"];

/// Checks words, then calls.
pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (path, text) in &tree.files {
        if path == SELF || !LOOKED_AT.iter().any(|end| path.ends_with(end)) {
            continue;
        }
        // Tests may look for data beside the clone.
        let test_file = path.contains("/tests/");
        for (i, line) in text.lines().enumerate() {
            for word in UNFINISHED.iter().filter(|word| has_word(line, word)) {
                findings.push(Finding::new(
                    path,
                    i + 1,
                    format!("{word}: finish it, or open an issue and leave no mark"),
                ));
            }
            let lower = line.to_lowercase();
            for word in
                WORKPLACE.iter().filter(|word| names_place(&lower, word) && !(test_file && **word == "../shared"))
            {
                findings.push(Finding::new(path, i + 1, format!("`{word}` means nothing to readers elsewhere")));
            }
        }
    }
    for (path, facts) in &tree.rust {
        for at in facts.calls.iter().filter(|at| !at.in_test) {
            let message = format!("`{}` outside tests: return an error, or make the case impossible", at.what);
            findings.push(Finding::new(path, at.line, message));
        }
        for at in facts.macros.iter().filter(|at| MACROS.contains(&at.what.as_str())) {
            findings.push(Finding::new(path, at.line, format!("`{}!` is for the workbench only", at.what)));
        }
    }
    Ok(findings)
}

/// Whether the word occurs; one that begins with `/` only as the start of a path.
fn names_place(line: &str, word: &str) -> bool {
    let inside_a_path = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    line.match_indices(word)
        .any(|(at, _)| !(word.starts_with('/') && line[..at].chars().next_back().is_some_and(inside_a_path)))
}

/// Whether the word stands alone in the line.
fn has_word(line: &str, word: &str) -> bool {
    let boundary = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word)
        .any(|(at, _)| boundary(line[..at].chars().next_back()) && boundary(line[at + word.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::sample(&[(path, text)])).unwrap().len()
    }

    #[test]
    fn unfinished_work_is_found_by_whole_words() {
        assert_eq!(found("a.md", "TODO: write"), 1);
        assert_eq!(found("a.rs", "// FIXME later"), 1);
        assert_eq!(found("a.md", "TODOS and XXXL"), 0);
    }

    #[test]
    fn the_workplace_is_not_mentioned() {
        assert_eq!(found("README.md", "see /work/main"), 1);
        assert_eq!(found("README.md", "a Subagent wrote this"), 1);
        assert_eq!(found("README.md", "the collector's work/life balance"), 0);
        assert_eq!(found("README.md", "see benches/work/mod.rs"), 0);
        assert_eq!(found("crates/cli/tests/traces.rs", "const T: &str = \"../shared/traces\";"), 0);
        assert_eq!(found("crates/cli/src/main.rs", "const T: &str = \"../shared/traces\";"), 1);
    }

    #[test]
    fn calls_that_panic_are_for_tests() {
        assert_eq!(found("crates/a/src/lib.rs", "fn f() { g().unwrap(); h().expect(\"why\"); }"), 2);
        assert_eq!(found("crates/a/src/lib.rs", "#[cfg(test)] mod tests { fn f() { g().unwrap(); } }"), 0);
        assert_eq!(found("crates/a/tests/b.rs", "fn f() { g().unwrap(); }"), 0);
        assert_eq!(found("crates/a/src/lib.rs", "fn f() { g().unwrap_or_default(); }"), 0);
        assert_eq!(found("crates/a/src/lib.rs", "fn f() { dbg!(1); }"), 1);
    }
}
