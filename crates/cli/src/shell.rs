//! Completions and man pages, made from the same definition as the help.

use crate::config;
use crate::output;
use anyhow::{Context, Result};
use clap_complete::Shell;
use std::path::Path;

/// Prints completions for a shell.
pub fn completions(shell: Shell) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut config::command(), "openftl", &mut text);
    output::print(&String::from_utf8(text).context("completions are not UTF-8")?)
}

/// Prints the man page of `openftl`, or writes it and those of its commands to a folder.
pub fn man(dir: Option<&Path>) -> Result<()> {
    let command = config::command();
    let Some(dir) = dir else {
        let mut text = Vec::new();
        clap_mangen::Man::new(command).render(&mut text).context("cannot make the man page")?;
        return output::print(&String::from_utf8(text).context("the man page is not UTF-8")?);
    };
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    clap_mangen::generate_to(command, dir).with_context(|| format!("cannot write man pages to {}", dir.display()))?;
    output::complain(&format!("wrote man pages to {}", dir.display()));
    Ok(())
}
