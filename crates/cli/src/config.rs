//! Options from a TOML file, and options written to one.
//!
//! A key is the long name of an option, and its value what the command line would say: text, a
//! number, `true` for a flag, or a list where the option can be given several times. An argument
//! without a name has the name that the help gives it, in small letters. The file is turned into
//! words before the command line is read, so that both mean the same.

use crate::args::Cli;
use crate::error::{hint, usage};
use anyhow::{Context, Result, anyhow};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;
use toml::{Table, Value};

/// Commands that take options from files.
const COMMANDS: [&str; 4] = ["compare", "sweep", "tail", "crash"];

const READ: &str = "config";
const WRITE: &str = "write-config";

/// Where results go is not written to a file: to repeat a run should not overwrite its results.
const RESULTS: [&str; 8] = [READ, WRITE, "json", "no_timeline", "html", "csv", "out", "promises"];

/// The words of the command line, with those of its file.
static SAID: OnceLock<Vec<String>> = OnceLock::new();

/// The whole command line, as if nothing came from a file.
pub fn said() -> impl Iterator<Item = String> {
    SAID.get().cloned().unwrap_or_else(|| std::env::args().collect()).into_iter()
}

/// The definition of all commands.
pub fn command() -> Command {
    let file = |name: &'static str, help: &'static str| {
        let parser = clap::value_parser!(PathBuf);
        Arg::new(name)
            .long(name)
            .value_name("FILE.toml")
            .value_hint(ValueHint::FilePath)
            .value_parser(parser)
            .help(help)
    };
    let read = "Take options from this file: `cache = \"64KiB\"` there is --cache=64KiB here. What is said here counts";
    let write = "Write the options of this run to this file, with those that nobody gave, for --config";
    COMMANDS.into_iter().fold(Cli::command(), |all, name| {
        all.mut_subcommand(name, |command| command.arg(file(READ, read)).arg(file(WRITE, write)))
    })
}

/// The command line with the options of its file, which is read if there is one.
///
/// # Errors
/// If the file cannot be read, or says what no option is.
pub fn expand(words: Vec<OsString>) -> Result<Vec<OsString>> {
    let definition = command();
    // What is wrong with the words alone is said where all are read.
    let Ok(matches) = definition.clone().try_get_matches_from(&words) else { return Ok(words) };
    let Some((name, given)) = matches.subcommand().filter(|(name, _)| COMMANDS.contains(name)) else {
        return Ok(words);
    };
    let Some(path) = given.get_one::<PathBuf>(READ) else { return Ok(words) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let table: Table = text.parse().map_err(|error| anyhow!("{}: {error}", path.display()))?;
    let wrong = |key: &str, why: String| usage(format!("{}{}: {key} {why}", path.display(), place(&text, key)));
    let commands: Vec<&Command> =
        [name, "compare"].iter().filter_map(|name| definition.find_subcommand(name)).collect();
    let (mut options, mut last) = (Vec::new(), Vec::new());
    for (key, value) in &table {
        // A sweep passes on the options of comparisons.
        let passed_on =
            || (name == "sweep").then_some(commands.get(1)).flatten().and_then(|compare| find(compare, key));
        let own = commands.first().and_then(|command| find(command, key));
        let Some(arg) = own.or_else(passed_on).filter(|_| key != READ && key != WRITE) else {
            let known = commands[0].get_arguments().filter_map(Arg::get_long);
            return Err(wrong(key, format!("is no option of openftl {name}{}", hint(key, known))));
        };
        let on_line = |arg: &Arg| {
            given.try_get_raw(arg.get_id().as_str()).is_ok_and(|raw| raw.is_some())
                && given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        if own.is_some() && (on_line(arg) || commands[0].get_arg_conflicts_with(arg).into_iter().any(on_line)) {
            continue;
        }
        let said = words_of(arg, key, value).map_err(|why| wrong(key, why))?;
        if own.is_none() || arg.is_last_set() { &mut last } else { &mut options }.extend(said);
    }
    Ok(joined(words, options, last))
}

/// The line of a key, for an error.
fn place(text: &str, key: &str) -> String {
    let says = |line: &str| {
        let line = line.trim_start().trim_start_matches(['[', '"']);
        line.strip_prefix(key).is_some_and(|rest| rest.trim_start_matches('"').trim_start().starts_with(['=', ']']))
    };
    text.lines().position(says).map_or_else(String::new, |at| format!(", line {}", at + 1))
}

/// The option of that long name, or the argument that the help calls so.
fn find<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    let called = |arg: &&Arg| match arg.get_long() {
        Some(long) => long == key,
        None => arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.to_lowercase() == key)),
    };
    command.get_arguments().find(called)
}

/// What the command line would say.
fn words_of(arg: &Arg, key: &str, value: &Value) -> Result<Vec<OsString>, String> {
    let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
    let may_be_flag = is_flag || arg.get_num_args().is_some_and(|values| values.min_values() == 0);
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(_) => Err("takes no true or false".to_owned()),
        _ => Err("must be text, a number, true, false, or a list of those".to_owned()),
    };
    let said = |value: &Value| {
        let value = text(value)?;
        Ok(OsString::from(if arg.is_positional() { value } else { format!("--{key}={value}") }))
    };
    match value {
        Value::Boolean(on) if may_be_flag => Ok(on.then(|| format!("--{key}").into()).into_iter().collect()),
        _ if is_flag => Err("is a flag: write true or false".to_owned()),
        Value::Array(values) => values.iter().map(said).collect(),
        value => said(value).map(|word| vec![word]),
    }
}

/// The words with more options after the command, and more of what comes after `--`.
fn joined(mut words: Vec<OsString>, options: Vec<OsString>, last: Vec<OsString>) -> Vec<OsString> {
    let at = words.iter().skip(1).position(|word| COMMANDS.iter().any(|name| word == name)).map_or(1, |at| at + 2);
    words.splice(at..at, options);
    if !last.is_empty() {
        let dashes = words.iter().position(|word| word == "--").unwrap_or_else(|| {
            words.push("--".into());
            words.len() - 1
        });
        words.splice(dashes + 1..dashes + 1, last);
    }
    words
}

/// Keeps the words for [`said`], and writes the options to a file if that was asked for.
///
/// # Errors
/// If the file cannot be written.
pub fn keep(words: &[OsString], matches: &ArgMatches) -> Result<()> {
    let own = |word: &&OsString| {
        let word = word.to_string_lossy();
        !word.starts_with("--config=") && !word.starts_with("--write-config=")
    };
    let mut said: Vec<String> = words.iter().filter(own).map(|word| word.to_string_lossy().into_owned()).collect();
    for name in [READ, WRITE] {
        let option = format!("--{name}");
        if let Some(at) = said.iter().position(|word| *word == option) {
            said.drain(at..(at + 2).min(said.len()));
        }
    }
    let _ = SAID.set(said);
    let Some((name, given)) = matches.subcommand().filter(|(name, _)| COMMANDS.contains(name)) else { return Ok(()) };
    let Some(path) = given.get_one::<PathBuf>(WRITE) else { return Ok(()) };
    let definition = command();
    let Some(command) = definition.find_subcommand(name) else { return Ok(()) };
    let mut table = Table::new();
    for arg in command.get_arguments().filter(|arg| !RESULTS.contains(&arg.get_id().as_str())) {
        if let Some((key, value)) = value_of(arg, given) {
            table.insert(key, value);
        }
    }
    let text = toml::to_string(&table).context("the options are no TOML")?;
    crate::output::write(path, &format!("# openftl {name} --config FILE\n{text}"))
}

/// An option as a file has it, if it has a value.
fn value_of(arg: &Arg, given: &ArgMatches) -> Option<(String, Value)> {
    let id = arg.get_id().as_str();
    let called = arg.get_value_names().and_then(|names| names.first()).map(|name| name.to_lowercase());
    let key = arg.get_long().map(str::to_owned).or(called)?;
    match arg.get_action() {
        ArgAction::SetTrue => given.get_flag(id).then_some((key, Value::Boolean(true))),
        ArgAction::Set | ArgAction::Append => {
            let raw = given.get_raw(id)?.map(|value| Value::String(value.to_string_lossy().into_owned()));
            let mut raw: Vec<Value> = raw.collect();
            let value = if raw.len() == 1 { raw.remove(0) } else { Value::Array(raw) };
            Some((key, value))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(words: &str, file: &str) -> Result<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        std::fs::write(&path, file).unwrap();
        let words = words.replace("FILE", path.to_str().unwrap());
        let words = expand(words.split(' ').map(OsString::from).collect())?;
        let words: Vec<OsString> = words;
        command().try_get_matches_from(&words)?;
        Ok(words.iter().map(|word| word.to_string_lossy().replace(path.to_str().unwrap(), "FILE")).collect())
    }

    #[test]
    fn a_file_says_what_the_line_would() {
        let file = "capacity = \"1GiB\"\nseed = 7\nlevel-wear = true\njanus-learn = true\njson = false\nftl = [\"page\", \"dftl\"]\nlogical-ratio = 0.75\n";
        let words = expanded("openftl compare --config FILE --seed 9", file).unwrap();
        let expected = "openftl compare --capacity=1GiB --level-wear --janus-learn --ftl=page --ftl=dftl --logical-ratio=0.75 --config FILE --seed 9";
        assert_eq!(words.join(" "), expected);
        // A trace on the line takes the place of the file's workload.
        let words = expanded("openftl compare --config FILE x.csv", "workload = \"uniform\"\n").unwrap();
        assert_eq!(words.join(" "), "openftl compare --config FILE x.csv");
        let words = expanded("openftl compare --config FILE", "trace = \"x.csv\"\n").unwrap();
        assert_eq!(words.join(" "), "openftl compare x.csv --config FILE");
    }

    #[test]
    fn a_sweep_passes_options_of_comparisons_on() {
        let file = "seed = \"1..3\"\ntiming = \"queued\"\nvary = [\"cache=16KiB,64KiB\"]\n";
        let words = expanded("openftl sweep --config FILE", file).unwrap();
        assert_eq!(
            words.join(" "),
            "openftl sweep --seed=1..3 --vary=cache=16KiB,64KiB --config FILE -- --timing=queued"
        );
        let words = expanded("openftl sweep --config FILE -- --level-wear", "timing = \"queued\"\n").unwrap();
        assert_eq!(words.join(" "), "openftl sweep --config FILE -- --timing=queued --level-wear");
    }

    #[test]
    fn what_is_no_option_says_where() {
        for (file, why) in [
            ("seed = 1\ncach = 4\n", "run.toml, line 2: cach is no option of openftl compare, did you mean `cache`?"),
            ("janus-learn = \"yes\"\n", "line 1: janus-learn is a flag: write true or false"),
            ("cache-ways = 4\ncache = true\n", "line 2: cache takes no true or false"),
            ("[cache]\nbytes = 4\n", "must be text, a number"),
            ("config = \"other.toml\"\n", "config is no option"),
        ] {
            let error = expanded("openftl compare --config FILE", file).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(expanded("openftl compare --config FILE", "cache =\n").unwrap_err().to_string().contains("run.toml"));
    }
}
