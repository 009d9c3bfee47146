//! Links in documents lead somewhere.

use crate::tree::{Finding, Tree};
use anyhow::Result;
use std::collections::BTreeSet;

/// Checks each relative link of each Markdown file: the file is there, and so is its heading.
pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (path, text) in tree.files.iter().filter(|(path, _)| path.ends_with(".md")) {
        for (line, target) in links(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').map_or((target, None), |(file, h)| (file, Some(h)));
            let file = if file.is_empty() { path.clone() } else { resolve(path, file) };
            let folder = format!("{}/", file.trim_end_matches('/'));
            if !tree.files.contains_key(&file) && !tree.files.keys().any(|other| other.starts_with(&folder)) {
                findings.push(Finding::new(path, line, format!("link to `{target}`, which is not there")));
            } else if let (Some(heading), Some(text)) = (heading, tree.files.get(&file))
                && !anchors(text).contains(heading)
            {
                findings.push(Finding::new(path, line, format!("link to `{target}`: {file} has no such heading")));
            }
        }
    }
    Ok(findings)
}

/// The targets of `[text](target)` outside code blocks, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            if let Some(end) = rest.find(')') {
                let target = rest[..end].split_whitespace().next().unwrap_or_default();
                found.push((i + 1, target));
            }
        }
    }
    found
}

/// A path relative to the folder of `from`, from the root.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a document's headings, made as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings
        .map(|heading| {
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        let files = [("docs/A.md", text), ("docs/B.md", "# The spare area\n"), ("crates/nand/src/lib.rs", "")];
        check(&Tree::sample(&files)).unwrap().len()
    }

    #[test]
    fn links_to_files_folders_and_headings_resolve() {
        assert_eq!(found("[b](B.md) [b](./B.md#the-spare-area) [n](../crates/nand) [w](https://example.org)"), 0);
        assert_eq!(found("[c](C.md)"), 1);
        assert_eq!(found("[b](B.md#missing)"), 1);
        assert_eq!(found("```\n[c](C.md)\n```\n"), 0);
    }
}
