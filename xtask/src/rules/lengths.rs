//! Files and functions stay short enough to read in one sitting, and lines of comments to read at
//! one glance.

use crate::tree::{Finding, Tree};
use anyhow::Result;

/// A file of code has fewer lines than this.
const FILE_LINES_END: usize = 600;
/// A function has fewer lines than this, from `fn` to its closing brace.
const FUNCTION_LINES_END: usize = 70;
/// A line of a comment ends at this column. A line of code ends where rustfmt ends it.
const COMMENT_COLUMNS: usize = 100;
/// Endings of the files that count as code.
const CODE: [&str; 5] = [".rs", ".py", ".sh", ".c", ".h"];

/// Functions that may be longer: file, name, and why.
const LONG_FUNCTIONS: [(&str, &str, &str); 0] = [];

/// Checks every file and function.
pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (path, text) in tree.files.iter().filter(|(path, _)| CODE.iter().any(|end| path.ends_with(end))) {
        let lines = text.lines().count();
        if lines >= FILE_LINES_END {
            let message =
                format!("{lines} lines; a file has fewer than {FILE_LINES_END}: split it by what it is about");
            findings.push(Finding::new(path, 1, message));
        }
    }
    for (path, text) in tree.files.iter().filter(|(path, _)| path.ends_with(".rs")) {
        for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| text.trim_start().starts_with("//")) {
            let columns = text.chars().count();
            let table = text.trim_start_matches(['/', '!', ' ']).starts_with('|');
            if columns > COMMENT_COLUMNS && !table && text.split_whitespace().count() > 2 {
                let message =
                    format!("{columns} columns; a comment ends at column {COMMENT_COLUMNS}: go on in the next line");
                findings.push(Finding::new(path, line, message));
            }
        }
    }
    for (path, facts) in &tree.rust {
        for at in &facts.functions {
            let excepted = LONG_FUNCTIONS.iter().any(|(file, name, _)| file == path && *name == at.what.name);
            if at.what.lines >= FUNCTION_LINES_END && !excepted {
                let message = format!(
                    "`{}` has {} lines; a function has fewer than {FUNCTION_LINES_END}",
                    at.what.name, at.what.lines
                );
                findings.push(Finding::new(path, at.line, message));
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(lines: usize) -> String {
        "// x\n".repeat(lines)
    }

    fn function_of(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "g();\n".repeat(lines - 2))
    }

    #[test]
    fn the_last_legal_lengths_pass_and_one_more_fails() {
        let found = |text: String| check(&Tree::sample(&[("a.rs", &text)])).unwrap().len();
        assert_eq!(found(file_of(FILE_LINES_END - 1)), 0);
        assert_eq!(found(file_of(FILE_LINES_END)), 1);
        assert_eq!(found(function_of(FUNCTION_LINES_END - 1)), 0);
        assert_eq!(found(function_of(FUNCTION_LINES_END)), 1);
    }

    #[test]
    fn a_comment_ends_at_its_column_and_a_word_alone_may_be_longer() {
        let found = |text: &str| check(&Tree::sample(&[("a.rs", text)])).unwrap().len();
        let comment = |columns: usize| format!("    // a {}\n", "b".repeat(columns - 9));
        assert_eq!(found(&comment(COMMENT_COLUMNS)), 0);
        assert_eq!(found(&comment(COMMENT_COLUMNS + 1)), 1);
        assert_eq!(found(&format!("// {}\n", "b".repeat(COMMENT_COLUMNS))), 0);
    }

    #[test]
    fn documents_may_be_long() {
        assert!(check(&Tree::sample(&[("a.md", &file_of(2000))])).unwrap().is_empty());
    }
}
