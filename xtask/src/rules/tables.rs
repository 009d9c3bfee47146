//! Every file in the folder of a table stands in the table.

use crate::facts::Facts;
use crate::tree::{Finding, Tree};
use anyhow::Result;

/// Folders with one file a row.
const FOLDERS: &[&str] = &[
    "crates/ftl/src/ftls",
    "crates/ftl/src/victim",
    "crates/ftl/src/placement",
    "crates/ftl/src/validity",
    "crates/workload/src/synthetic",
    "crates/workload/src/trace/formats",
];

/// The folder with one folder a paper, each a folder with one file a figure.
const PAPERS: &str = "crates/papers/src";

/// Files in those folders that several rows share, and what they are.
const SHARED: &[(&str, &str)] = &[
    ("crates/papers/src/geckoftl/common.rs", "what a run measures, in the groups of the paper's figures"),
    ("crates/papers/src/lftl/setting.rs", "the card and its host, for every figure that is measured"),
    ("crates/papers/src/ftrm/setting.rs", "the device and the workloads, for every figure"),
    ("crates/papers/src/ftrm/responses.rs", "response times, for both figures that show them"),
    ("crates/papers/src/rows/loads.rs", "the loads and their devices, for every figure"),
    ("crates/papers/src/rows/measured.rs", "what is measured of an FTL under a load, for every figure"),
    ("crates/papers/src/janus/loads.rs", "workloads, for every figure that is measured"),
    ("crates/papers/src/janus/times.rs", "what time is spent on, for every figure that compares FTLs"),
    ("crates/ftl/src/victim/by_bank.rs", "collection bank by bank, for who places pages so: LFTL and the simulator"),
    ("crates/ftl/src/victim/lists.rs", "blocks linked by valid count, for several policies"),
    ("crates/ftl/src/victim/queues.rs", "blocks in the order in which they were filled, for who collects them so"),
    ("crates/ftl/src/placement/wear.rs", "levelling of wear, which decides before any policy"),
    ("crates/ftl/src/placement/kmeans.rs", "ages in groups, for the policy that parts pages by age"),
    ("crates/ftl/src/ftls/over_ring.rs", "FTLs over a cached table with a ring of recent updates"),
    ("crates/ftl/src/validity/check.rs", "check values, for every store that is found again after power loss"),
    ("crates/workload/src/trace/formats/fields.rs", "columns of text, for every text format"),
];

/// Checks each folder that is there.
pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let papers: Vec<&str> = papers(tree).collect();
    let mut findings: Vec<Finding> =
        FOLDERS.iter().chain(&papers).flat_map(|folder| missing_files(tree, folder)).collect();
    let table = format!("{PAPERS}/table.rs");
    for folder in papers {
        let name = &folder[PAPERS.len() + 1..];
        if !tree.rust.get(&table).is_some_and(|facts| names(facts, name)) {
            findings.push(Finding::new(&format!("{folder}/mod.rs"), 1, format!("not in {table}: add its row")));
        }
    }
    Ok(findings)
}

/// The folders of the papers.
fn papers(tree: &Tree) -> impl Iterator<Item = &str> {
    let folders = tree.rust.keys().filter_map(|path| path.strip_suffix("/mod.rs"));
    folders.filter(|folder| folder.strip_prefix(PAPERS).is_some_and(|inside| inside.rfind('/') == Some(0)))
}

/// Files of a folder that no row of its table names.
fn missing_files(tree: &Tree, folder: &str) -> Vec<Finding> {
    let table = format!("{folder}/mod.rs");
    let Some(facts) = tree.rust.get(&table) else { return Vec::new() };
    let mut findings = Vec::new();
    for (path, row) in tree.rust.iter().filter(|(path, _)| path.starts_with(&format!("{folder}/"))) {
        let inside = &path[folder.len() + 1..];
        let name = inside.trim_end_matches(".rs").split('/').next().unwrap_or_default();
        let shared = SHARED.iter().any(|(file, _)| file == path) || facts.test_modules.iter().any(|m| m == name);
        if name == "mod" || shared || inside.contains('/') || holds_only_tests(row) {
            continue;
        }
        if !names(facts, name) {
            findings.push(Finding::new(path, 1, format!("not in the table of {table}: add its row")));
        }
    }
    findings
}

/// Whether a table names a module outside tests.
fn names(table: &Facts, module: &str) -> bool {
    table.path_heads.iter().any(|at| at.what == module && !at.in_test)
}

fn holds_only_tests(facts: &Facts) -> bool {
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
    fn a_paper_stands_in_the_table_of_papers_and_a_figure_in_that_of_its_paper() {
        let found = |papers: &str, figures: &str| {
            let files = [
                ("crates/papers/src/table.rs", papers),
                ("crates/papers/src/janus/mod.rs", figures),
                ("crates/papers/src/janus/fig4.rs", "pub fn plan() {}"),
                ("crates/papers/src/janus/model/mod.rs", "pub fn cost() {}"),
            ];
            check(&Tree::sample(&files)).unwrap().into_iter().map(|finding| finding.path).collect::<Vec<_>>()
        };
        let (papers, figures) =
            ("static PAPERS: [&[Figure]; 1] = [&janus::FIGURES];", "static FIGURES: F = fig4::FIGURE;");
        assert_eq!(found(papers, figures), [""; 0]);
        assert_eq!(found(papers, "mod fig4;"), ["crates/papers/src/janus/fig4.rs"]);
        assert_eq!(found("use crate::janus;", figures), ["crates/papers/src/janus/mod.rs"]);
    }

    #[test]
    fn tests_beside_a_table_need_no_row() {
        let files =
            [("crates/ftl/src/ftls/mod.rs", "#[cfg(test)] mod laws;"), ("crates/ftl/src/ftls/laws.rs", "fn f() {}")];
        assert_eq!(check(&Tree::sample(&files)).unwrap(), []);
    }
}
