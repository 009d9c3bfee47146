//! `openftl`: compare flash translation layers on a workload or on a trace.
//!
//! Reading order: [`args`] and [`config`] (what can be asked), [`compare`] (the main command:
//! [`device`] and [`load`] say what is run, [`settings`] what the FTLs are told, [`workers`] run
//! it, [`report`] is what came out), [`sweep`] (many of those), [`tail`] (their latency under
//! load), [`watch`] (one step by step), [`reproduce`] (the papers' figures), [`mod@crash`] (is
//! anything lost?), [`image`] (disks in files) with [`mod@format`], [`inspect`] and [`serve`] over
//! [`backing`] or [`mod@flash`], then the small commands [`model`], [`list`], [`trace`],
//! [`mod@bench`], [`shell`].
#![forbid(unsafe_code)]

mod args;
mod backing;
mod banked;
mod bench;
mod buffer;
mod capacity;
mod compare;
mod config;
mod content;
mod crash;
mod device;
mod error;
mod fitted;
#[cfg(target_os = "linux")]
mod flash;
mod format;
mod growth;
mod image;
mod inspect;
mod list;
mod load;
mod model;
mod output;
mod promises;
mod report;
mod reproduce;
mod serve;
mod settings;
mod shell;
mod sweep;
mod tail;
mod trace;
mod units;
mod watch;
mod workers;

use args::{Cli, Command};
use clap::FromArgMatches;
use std::process::ExitCode;

/// Tables of simulated devices are large, and looked up at random.
#[global_allocator]
static ALLOCATOR: hugepages::HugePages = hugepages::HugePages;

fn main() -> ExitCode {
    match configured().and_then(|cli| run(&cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("error: {}", error::text(&error)));
            ExitCode::from(error::exit_code(&error))
        }
    }
}

/// What was asked, on the command line and in the file that it names.
fn configured() -> anyhow::Result<Cli> {
    let words = config::expand(std::env::args_os().collect())?;
    let matches = config::command().get_matches_from(&words);
    config::keep(&words, &matches)?;
    Ok(Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()))
}

fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Compare(args) => compare::run(args),
        Command::Watch(args) => watch::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Tail(args) => tail::run(args),
        Command::Crash(args) => crash::run(args),
        Command::Format(args) => format::run(args),
        Command::Inspect(args) => inspect::inspect(args),
        Command::Check(args) => inspect::check(args),
        Command::Serve(args) => serve::run(args),
        Command::List(args) => list::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Model(args) => model::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Completions { shell } => shell::completions(*shell),
        Command::Man { dir } => shell::man(dir.as_deref()),
    }
}
