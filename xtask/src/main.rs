//! `cargo xtask tidy` checks what the compiler does not; `cargo xtask docs` writes the documents
//! that follow from the code; `cargo xtask mutants` changes the code and sees whether a test turns
//! red.
//!
//! Reading order: [`tree`] (the files), [`facts`] (what a Rust file says, for rules to judge),
//! [`rules`] (one file each, and their table), [`mutants`].
#![forbid(unsafe_code)]

mod docs;
mod facts;
mod mutants;
mod rules;
mod tree;

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tree::Tree;

const HELP: &str = "\
usage: cargo xtask COMMAND

  tidy       check lengths, layering, tables, words, links and generated documents
  docs       write the generated documents
  mutants    change the code in one place at a time, and say which changes no test sees";

fn main() -> ExitCode {
    let command = std::env::args().nth(1);
    if command.as_deref() == Some("mutants") {
        return match root() {
            Ok(root) => mutants::main(&root, std::env::args().skip(2)),
            Err(error) => failed(&error),
        };
    }
    match run(command.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("xtask: {error:#}");
    ExitCode::FAILURE
}

fn run(command: Option<&str>) -> Result<()> {
    let root = root()?;
    match command {
        Some("tidy") => tidy(&root),
        Some("docs") => docs::write(&root),
        Some("help" | "--help" | "-h") => {
            println!("{HELP}");
            Ok(())
        }
        Some(other) => bail!("there is no command `{other}`\n{HELP}"),
        None => bail!("no command given\n{HELP}"),
    }
}

fn tidy(root: &Path) -> Result<()> {
    let tree = Tree::read(root)?;
    let mut findings = Vec::new();
    for rule in rules::TABLE {
        findings.extend((rule.check)(&tree)?.into_iter().map(|finding| (rule.name, finding)));
    }
    for (rule, finding) in &findings {
        println!("{}:{}: {} [{rule}]", finding.path, finding.line, finding.message);
    }
    if !findings.is_empty() {
        bail!("{} finding(s)", findings.len());
    }
    println!("tidy: {} files, {} rules, nothing found", tree.files.len(), rules::TABLE.len());
    Ok(())
}

/// The workspace: the folder above this package.
fn root() -> Result<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(package.parent().context("xtask has no folder above it")?.to_path_buf())
}
