//! `cargo xtask mutants`: does a test turn red when the code is changed?
//!
//! Reading order: [`source`] and [`operators`] (which changes there are), [`render`] (all of them
//! in one text), [`tree`] and [`build`] (the copy), [`checks`] and [`process`] (what decides),
//! [`report`]. `docs/MUTATIONS.md` says how to use it.

mod build;
mod checks;
mod hand;
mod operators;
mod process;
mod render;
mod report;
mod source;
#[cfg(test)]
mod tests;
mod tree;

use anyhow::{Context, Result, bail};
use build::Mutants;
use checks::{Checks, Exploration, Verdict};
use clap::Parser;
use report::{Outcome, Report};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

/// Runs at a time.
const JOBS: usize = 2;
/// Mutants beside a tenth of a sample that are built in place of those of it that do not compile.
const SPARE: usize = 10;

#[derive(Parser)]
#[command(
    name = "cargo xtask mutants",
    about = "Changes the code in one place at a time, and says which changes no test sees"
)]
struct Options {
    /// Run this many mutants, chosen by the seed
    #[arg(long, value_name = "N", group = "drawn", conflicts_with_all = ["all", "only"])]
    sample: Option<usize>,
    /// Choose with this seed; without, the days since 1970
    #[arg(long, requires = "drawn")]
    seed: Option<u64>,
    /// Run the whole: one mutant in `--one-in`, always the same ones, and those of
    /// xtask/mutants/by-hand.toml
    #[arg(long, conflicts_with = "only")]
    all: bool,
    /// How many mutants stand behind one that `--all` runs; 1 for every mutant
    #[arg(long, value_name = "N", default_value_t = 50, requires = "all", value_parser = clap::value_parser!(u64).range(1..))]
    one_in: u64,
    /// Run one in N of what `--all` runs; N seeds in a row run all of it
    #[arg(long, value_name = "N", group = "drawn", requires = "all", value_parser = clap::value_parser!(u64).range(1..))]
    share: Option<u64>,
    /// Run the mutant of this identity; may be given several times
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// Only mutants whose identity contains this text
    #[arg(long = "in", value_name = "TEXT")]
    inside: Option<String>,
    /// Print the mutants, and run nothing
    #[arg(long)]
    list: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Fail below this score, in percent, if a survivor is not accepted
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0)]
    limit: f64,
    /// Cut points that the explorer tries with each FTL
    #[arg(long, value_name = "N", default_value_t = 3000)]
    cuts: u64,
    /// Leave out the integration tests, which are slow: the explorer and the unit tests decide
    #[arg(long)]
    quick: bool,
}

impl Options {
    fn seed(&self) -> u64 {
        let today = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs() / 86_400);
        self.seed.unwrap_or(today)
    }
}

/// Runs the command.
pub fn main(root: &Path, arguments: impl Iterator<Item = String>) -> ExitCode {
    let options = match Options::try_parse_from(["cargo xtask mutants".to_owned()].into_iter().chain(arguments)) {
        Ok(options) => options,
        // To help and errors alike belong their own output and code: 0 and 2.
        Err(error) => error.exit(),
    };
    if !options.list && !options.all && options.sample.is_none() && options.only.is_empty() {
        eprintln!("xtask mutants: say which: --sample N, --all, --only ID or --list");
        return ExitCode::from(2);
    }
    match run(root, &options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask mutants: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path, options: &Options) -> Result<bool> {
    let by_hand = hand::entries(root)?;
    let accepted = hand::accepted(root)?;
    let mut mutants = Mutants::read(root, &by_hand, Vec::new())?;
    let known: BTreeSet<String> = mutants.all().map(|(_, mutant)| mutant.identity.clone()).collect();
    let kept = hand::kept(root)?;
    if options.list {
        return report::list(
            mutants.all().map(|(_, mutant)| mutant).filter(|m| is_inside(options, &m.identity)),
            options.json,
        );
    }
    let say = |line: &str| eprintln!("{line}");
    if let Some(identity) = options.only.iter().find(|only| !known.contains(*only)) {
        bail!("there is no mutant `{identity}`; --list prints all");
    }
    let folder = folder(root);
    let start = Instant::now();
    for identity in kept.iter().filter(|identity| !known.contains(*identity)) {
        say(&format!(
            "stale in xtask/mutants/by-hand.toml: it keeps {identity}, which does not exist; correct or remove it"
        ));
    }
    let copy = tree::Copy::new(root, &folder)?;
    mutants.forget(&fs::read_to_string(dropped_path(&copy)).unwrap_or_default());
    mutants.chosen = Some(choose(&mutants, &kept, options, &say));
    let mutants = settle(&copy, root, &by_hand, mutants, &say)?;
    let chosen = drawn(&mutants, options)?;
    say(&format!("{} of {} mutants; {} others do not compile", chosen.len(), known.len(), mutants.dropped.len()));
    let binaries = build::tests(&copy, options.quick)?;
    let built = start.elapsed();
    say(&format!("built in {:.0} s; running everything unmutated", built.as_secs_f64()));
    let start = Instant::now();
    let exploration = Exploration { quick: options.quick, cuts: options.cuts, seed: 1 };
    let checks = Checks::unmutated(&copy, &binaries, exploration, JOBS)?;
    let unmutated = start.elapsed();
    for test in checks.left_out() {
        say(&format!("left out, as it takes longer than a minute: {test}"));
    }
    for (name, time, reached) in checks.table() {
        say(&format!("  {:7.2} s  reaches {reached:5}  {name}", time.as_secs_f64()));
    }
    say(&format!(
        "green in {:.0} s, {:.0} s one after the other",
        unmutated.as_secs_f64(),
        checks.time().as_secs_f64()
    ));
    let outcomes = judge(&mutants, &checks, &chosen)?;
    let (total, dropped) = (known.len(), mutants.dropped);
    let report = Report { outcomes, accepted, known, dropped, total, limit: options.limit };
    Ok(report.print(options.json))
}

fn is_inside(options: &Options, identity: &str) -> bool {
    options.inside.as_ref().is_none_or(|text| identity.contains(text))
}

/// Where the copy is: below the folder of what is built.
fn folder(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    root.join(target).join("mutants")
}

/// What does not compile, from run to run.
fn dropped_path(copy: &tree::Copy) -> PathBuf {
    copy.target.with_file_name("dropped")
}

/// As [`build::settle`], keeping what was dropped for later runs.
fn settle(
    copy: &tree::Copy,
    root: &Path,
    by_hand: &[hand::Entry],
    mutants: Mutants,
    say: &dyn Fn(&str),
) -> Result<Mutants> {
    let path = dropped_path(copy);
    let save = |mutants: &Mutants| {
        fs::write(&path, mutants.dropped_with_files()).with_context(|| format!("cannot write {}", path.display()))
    };
    let mutants = build::settle(copy, root, by_hand, mutants, &|mutants, count| {
        say(&format!("{count} do not compile; checking the others"));
        // What is not saved is found again.
        let _ = save(mutants);
    })?;
    save(&mutants)?;
    Ok(mutants)
}

/// The identities of mutants to build: those to run, and some more of a sample, for those of it
/// that do not compile.
fn choose(mutants: &Mutants, kept: &[String], options: &Options, say: &dyn Fn(&str)) -> BTreeSet<String> {
    let compiled = mutants.all().filter(|(_, mutant)| !mutants.dropped.contains(&mutant.identity));
    let compiled = compiled.filter(|(_, mutant)| is_inside(options, &mutant.identity));
    if !options.only.is_empty() {
        return options.only.iter().cloned().collect();
    }
    let mut all: Vec<(u32, &str)> = compiled.map(|(id, mutant)| (id, &*mutant.identity)).collect();
    let identities = |all: &[(u32, &str)]| all.iter().map(|(_, identity)| (*identity).to_owned()).collect();
    let seed = options.seed();
    let Some(count) = options.sample else {
        let mut whole = one_in(options.one_in, &all, kept);
        if let Some(share) = options.share {
            say(&format!("one mutant in {share} of the whole: --share {share} --seed {seed}"));
            whole.retain(|(_, identity)| is_in_share(share, seed, identity));
        }
        return identities(&whole);
    };
    say(&format!("a sample of {count}: --sample {count} --seed {seed}"));
    // By identity: a change elsewhere leaves most of the sample as it is.
    all.sort_by_key(|(_, identity)| rolled(seed, identity));
    all.truncate(count + count / 10 + SPARE);
    identities(&all)
}

/// The mutants to run, of those that were built.
fn drawn(mutants: &Mutants, options: &Options) -> Result<Vec<u32>> {
    if let Some(identity) = options.only.iter().find(|identity| mutants.dropped.contains(*identity)) {
        bail!("`{identity}` does not compile");
    }
    let is_built = |identity: &String| {
        mutants.chosen.as_ref().is_none_or(|chosen| chosen.contains(identity)) && !mutants.dropped.contains(identity)
    };
    let built = mutants.all().filter(|(_, mutant)| is_built(&mutant.identity));
    let mut built: Vec<(u32, &str)> = built.map(|(id, mutant)| (id, &*mutant.identity)).collect();
    if let Some(count) = options.sample {
        built.sort_by_key(|(_, identity)| rolled(options.seed(), identity));
        built.truncate(count);
    }
    Ok(built.into_iter().map(|(id, _)| id).collect())
}

/// One in so many mutants, chosen by identity, so that those of a function stay the same whatever
/// is changed elsewhere; and those that are kept.
fn one_in<'a>(many: u64, mutants: &[(u32, &'a str)], kept: &[String]) -> Vec<(u32, &'a str)> {
    let is_kept = |identity: &str| identity.contains("#by-hand:") || kept.iter().any(|kept| kept == identity);
    let is_drawn = |identity: &str| rolled(0, identity).is_multiple_of(many);
    let chosen = mutants.iter().filter(|(_, identity)| is_kept(identity) || is_drawn(identity));
    chosen.copied().collect()
}

/// Whether a mutant is in the share of a seed; so many seeds in a row take every mutant once.
fn is_in_share(share: u64, seed: u64, identity: &str) -> bool {
    rolled(1, identity) % share == seed % share
}

/// A number by chance of a seed and an identity (FNV-1a, then mixed as splitmix64 does).
fn rolled(seed: u64, identity: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(identity.bytes());
    let mut x = bytes.fold(0xcbf2_9ce4_8422_2325, |x: u64, byte| (x ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn judge(mutants: &Mutants, checks: &Checks, chosen: &[u32]) -> Result<Vec<Outcome>> {
    let wanted: BTreeSet<u32> = chosen.iter().copied().collect();
    let start = Instant::now();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let list: Vec<(u32, &source::Mutant)> = mutants.all().filter(|(id, _)| wanted.contains(id)).collect();
    checks::in_parallel(JOBS, &list, |(id, mutant)| {
        let begun = Instant::now();
        let verdict = checks.judge(*id, &mutant.file)?;
        let outcome = Outcome { mutant: (*mutant).clone(), verdict, seconds: begun.elapsed().as_secs_f64() };
        let n = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        if !matches!(outcome.verdict, Verdict::Killed { .. }) || n.is_multiple_of(100) || n == list.len() {
            let at = start.elapsed().as_secs_f64();
            eprintln!("[{n}/{} {at:.0} s] {}", list.len(), outcome.line());
        }
        Ok(outcome)
    })
}
