//! Modules of a crate use each other in one direction: none leads back to itself.

use crate::tree::{Finding, Tree};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// Crates whose modules are checked; `ftl` has its own layers.
const CRATES: [&str; 2] = ["crates/sim", "crates/papers"];

/// Which modules at the top of a crate a module names.
type Uses<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Checks each crate.
pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for folder in CRATES {
        let source = format!("{folder}/src/");
        let named = named(tree, &source);
        let mut uses = Uses::new();
        for (from, to, ..) in &named {
            uses.entry(from).or_default().insert(to);
        }
        for (from, to, path, line) in &named {
            if let Some(back) = way(&uses, to, from) {
                let message = format!("{from} uses {to}, which leads back to it: {}", back.join(" -> "));
                findings.push(Finding::new(path, *line, message));
            }
        }
    }
    findings.dedup();
    Ok(findings)
}

/// Each place outside tests where a module names another one: both, the file and the line.
fn named<'a>(tree: &'a Tree, source: &str) -> Vec<(&'a str, &'a str, &'a str, usize)> {
    let inside = || tree.rust.iter().filter_map(|(path, facts)| Some((path.strip_prefix(source)?, path, facts)));
    let top = |inside: &'a str| inside.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    let modules: BTreeSet<&str> = inside().map(|(inside, ..)| top(inside)).collect();
    let mut named = Vec::new();
    for (inside, path, facts) in inside().filter(|(inside, ..)| !["lib.rs", "main.rs"].contains(inside)) {
        for at in facts.crate_paths.iter().filter(|at| !at.in_test) {
            let Some(used) = at.what.first().and_then(|first| modules.get(first.as_str())) else { continue };
            if *used != top(inside) {
                named.push((top(inside), *used, path.as_str(), at.line));
            }
        }
    }
    named
}

/// The shortest way from one module to another.
fn way<'a>(uses: &Uses<'a>, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
    let mut ways = vec![vec![from]];
    let mut seen = BTreeSet::from([from]);
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = *way.last()?;
            if last == to {
                return Some(way);
            }
            for next in uses.get(last).into_iter().flatten().filter(|next| seen.insert(next)) {
                longer.push([&way[..], &[*next]].concat());
            }
        }
        ways = longer;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::sample(files)).unwrap().into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_way_back_is_found_and_named() {
        let files = [
            ("crates/sim/src/run.rs", "use crate::timed::play;"),
            ("crates/sim/src/timed.rs", "use crate::feed::Feed;"),
            ("crates/sim/src/feed.rs", "fn f() { crate::run::run(); }"),
            ("crates/sim/src/host.rs", "use crate::run::run;"),
        ];
        assert_eq!(found(&files).len(), 3);
        assert!(found(&files).contains(&"run uses timed, which leads back to it: timed -> feed -> run".to_owned()));
        assert_eq!(found(&files[..2]), [""; 0]);
    }

    #[test]
    fn a_module_may_name_its_own_parts_and_tests_may_name_all() {
        let files = [
            ("crates/sim/src/timing/mod.rs", "mod unit; use crate::spec::Spec; use unit::Unit;"),
            ("crates/sim/src/timing/unit.rs", "use super::Machine; use crate::timing::Token;"),
            ("crates/sim/src/spec.rs", "#[cfg(test)] mod tests { use crate::timing::Machine; }"),
            ("crates/sim/src/lib.rs", "pub mod spec; pub mod timing; pub use crate::spec::Spec;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
