//! The arrows of ARCHITECTURE.md: who may use whom, between crates and inside `ftl`.

use crate::tree::{Finding, Tree};
use anyhow::{Context, Result};

/// Each crate of the workspace (its folder) and the crates it may depend on.
const CRATES: [(&str, &[&str]); 17] = [
    ("crates/nand", &[]),
    ("crates/mtd", &["nand"]),
    ("crates/ftl", &["nand"]),
    ("crates/table", &["nand", "ftl"]),
    ("crates/buffer", &[]),
    ("crates/lftl", &["nand", "ftl", "buffer"]),
    ("crates/workload", &[]),
    ("crates/sim", &["nand", "ftl", "table", "workload", "buffer"]),
    ("crates/papers", &["nand", "ftl", "lftl", "workload", "sim"]),
    ("crates/crash", &["nand", "ftl", "table", "workload"]),
    ("crates/blockdev", &["nand", "ftl", "lftl"]),
    ("crates/ublk", &["blockdev"]),
    ("crates/hugepages", &[]),
    (
        "crates/cli",
        &["nand", "mtd", "ftl", "table", "lftl", "workload", "sim", "papers", "crash", "blockdev", "ublk", "hugepages"],
    ),
    ("crates/fuzz", &["nand", "ftl", "table", "workload", "crash"]),
    ("fuzz", &["nand", "ftl", "table"]),
    ("xtask", &["ftl"]),
];

/// The short names by which the workspace's crates are depended on.
const MEMBERS: [&str; 14] = [
    "nand",
    "mtd",
    "ftl",
    "table",
    "buffer",
    "lftl",
    "workload",
    "sim",
    "papers",
    "crash",
    "blockdev",
    "ublk",
    "hugepages",
    "cli",
];

const PARTS: [&str; 4] = ["mapping", "validity", "victim", "placement"];

/// Modules of `ftl` from the bottom up; one not named here is below all of them.
const RANKS: [&[&str]; 6] =
    [&["validity", "victim", "placement"], &["space"], &["mapping"], &["recovery"], &["engine"], &["ftls"]];

/// Names of FTLs that are also plain words of the field, or names of validity stores.
const PLAIN_WORDS: [&str; 8] = ["page", "block", "gecko", "lazy", "fast", "superblock", "mu", "ib"];

const FTL_SOURCE: &str = "crates/ftl/src/";

/// Dependencies between crates follow the arrows.
pub fn crates(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (path, text) in &tree.files {
        let Some(folder) = path.strip_suffix("/Cargo.toml") else { continue };
        let manifest: toml::Table = toml::from_str(text).with_context(|| format!("{path} does not parse"))?;
        let Some((_, allowed)) = CRATES.iter().find(|(name, _)| *name == folder) else {
            findings.push(Finding::new(path, 1, "this crate has no row in xtask's table of layers; add one"));
            continue;
        };
        for dependency in
            manifest.get("dependencies").and_then(toml::Value::as_table).into_iter().flat_map(|t| t.keys())
        {
            if MEMBERS.contains(&dependency.as_str()) && !allowed.contains(&dependency.as_str()) {
                let line = text.lines().position(|line| line.starts_with(dependency.as_str())).unwrap_or(0) + 1;
                findings.push(Finding::new(path, line, format!("{folder} may not depend on {dependency}")));
            }
        }
    }
    Ok(findings)
}

/// Inside `ftl`, a module uses itself and what lies below it; a part may also name what stands at
/// the top of another part (its trait), for it may be generic over it, but nothing inside.
pub fn inside_ftl(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (path, facts) in &tree.rust {
        let Some(module) = top_module(path) else { continue };
        let Some(rank) = rank(module) else { continue };
        for at in facts.crate_paths.iter().filter(|at| !at.in_test) {
            let Some(used) = at.what.first() else { continue };
            let between_parts = PARTS.contains(&module) && PARTS.contains(&used.as_str());
            let allowed = match self::rank(used) {
                Some(other) if between_parts => other <= rank && at.what.len() == 2,
                Some(other) => other < rank,
                None => true,
            };
            if used == module || allowed {
                continue;
            }
            let message = format!("{module} may not use {used}: arrows point from the parts up to the FTLs");
            findings.push(Finding::new(path, at.line, message));
        }
    }
    findings.dedup();
    Ok(findings)
}

/// Parts are shared: none has the name of an FTL in an identifier.
pub fn parts_name_no_ftl(tree: &Tree) -> Result<Vec<Finding>> {
    let names: Vec<String> = ftl_names().into_iter().filter(|name| !PLAIN_WORDS.contains(&name.as_str())).collect();
    let mut findings = Vec::new();
    for (path, facts) in &tree.rust {
        if !top_module(path).is_some_and(|module| PARTS.contains(&module)) {
            continue;
        }
        for at in facts.idents.iter().filter(|at| !at.in_test) {
            let words = words_of(&at.what);
            if let Some(name) = names.iter().find(|name| words.contains(name)) {
                let message = format!("`{}` names the FTL {name}; a part is named for what it does", at.what);
                findings.push(Finding::new(path, at.line, message));
            }
        }
    }
    Ok(findings)
}

fn ftl_names() -> Vec<String> {
    let infos = ftl::ftls::infos();
    let suffixed = infos.iter().map(|info| format!("{}ftl", info.name));
    infos.iter().map(|info| info.name.to_owned()).chain(suffixed).collect()
}

/// The top module of `ftl` that a file belongs to.
fn top_module(path: &str) -> Option<&str> {
    let inside = path.strip_prefix(FTL_SOURCE)?;
    Some(inside.split('/').next()?.trim_end_matches(".rs"))
}

fn rank(module: &str) -> Option<usize> {
    RANKS.iter().position(|modules| modules.contains(&module))
}

/// `DemandCache` and `demand_cache` as `demand`, `cache`, and the whole without separators.
fn words_of(ident: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous_lower = false;
    for c in ident.chars() {
        if c == '_' || (c.is_uppercase() && previous_lower) {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().into_iter().for_each(|word| word.extend(c.to_lowercase()));
        }
        previous_lower = c.is_lowercase();
    }
    words.push(words.concat());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_depends_downwards_only() {
        let found = |path, text| crates(&Tree::sample(&[(path, text)])).unwrap();
        assert_eq!(found("crates/ftl/Cargo.toml", "[dependencies]\nnand.workspace = true"), []);
        let upwards = found("crates/ftl/Cargo.toml", "[dependencies]\nnand.workspace = true\nsim.workspace = true");
        assert_eq!((upwards.len(), upwards[0].line), (1, 3));
        assert_eq!(found("crates/sim/Cargo.toml", "[dependencies]\npapers.workspace = true").len(), 1);
        assert_eq!(found("crates/papers/Cargo.toml", "[dependencies]\nsim.workspace = true"), []);
        assert_eq!(found("crates/unknown/Cargo.toml", "").len(), 1);
    }

    #[test]
    fn inside_ftl_a_module_uses_what_lies_below() {
        let found = |path, text| inside_ftl(&Tree::sample(&[(path, text)])).unwrap().len();
        assert_eq!(found("crates/ftl/src/engine/page.rs", "use crate::{mapping::A, recovery::B, flash::C};"), 0);
        assert_eq!(found("crates/ftl/src/victim/greedy.rs", "use crate::engine::page;"), 1);
        assert_eq!(found("crates/ftl/src/victim/greedy.rs", "use super::super::mapping::ram::Map;"), 1);
        assert_eq!(found("crates/ftl/src/mapping/ram.rs", "use crate::validity::Validity;"), 0);
        assert_eq!(found("crates/ftl/src/mapping/ram.rs", "use crate::validity::bitmap::Bitmap;"), 1);
        assert_eq!(found("crates/ftl/src/victim/greedy.rs", "use super::Victim; use crate::victim::X;"), 0);
        assert_eq!(found("crates/ftl/src/flash.rs", "use crate::contract::X;"), 0);
        assert_eq!(found("crates/ftl/src/mapping/a.rs", "#[cfg(test)] mod tests { use crate::engine::X; }"), 0);
    }

    #[test]
    fn a_part_is_not_named_for_an_ftl() {
        assert_eq!(words_of("DftlTable"), ["dftl", "table", "dftltable"]);
        assert_eq!(words_of("GeckoFtl").last().unwrap(), "geckoftl");
        let found = |text| parts_name_no_ftl(&Tree::sample(&[("crates/ftl/src/mapping/a.rs", text)])).unwrap().len();
        assert_eq!(found("struct PageTable; struct Gecko;"), 0);
        if ftl_names().iter().any(|name| name == "dftl") {
            assert_eq!(found("struct DftlTable;"), 1);
        }
    }
}
