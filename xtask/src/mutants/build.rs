//! Writes the mutants into the copy, drops those that do not compile, and builds the tests.

use super::hand::Entry;
use super::render::{self, Written};
use super::source::{Mutant, Source};
use super::tree::{self, Copy, SOURCES};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Checks after which something other than a mutant must be at fault.
const ROUNDS: usize = 25;

/// Operators by which a value can be gone later, or still be there: the likeliest first.
const SUSPECTS: [&str; 6] = ["#skip-return:", "#collect-nothing:", "#skip-call:", "#skip-match:", "#skip-loop:", "#"];

/// In the identity of a mutant written by hand.
const BY_HAND: &str = "#by-hand:";

/// Every mutant, numbered over all files.
#[derive(Default)]
pub struct Mutants {
    sources: Vec<Source>,
    /// Functions that stay `const`.
    keep_const: Vec<String>,
    /// Identities that do not compile.
    pub dropped: BTreeSet<String>,
    /// The identities that are in the copy; all without. Each one there slows every run.
    pub chosen: Option<BTreeSet<String>>,
}

impl Mutants {
    /// Reads the mutated folders below `root`.
    ///
    /// # Errors
    /// If a file does not parse or an entry by hand does not fit.
    pub fn read(root: &Path, by_hand: &[Entry], keep_const: Vec<String>) -> Result<Self> {
        let mut files = Vec::new();
        for folder in tree::FOLDERS {
            collect(root, &Path::new(SOURCES).join(folder), &mut files)?;
        }
        files.sort();
        let mut sources = Vec::new();
        let mut wrong = Vec::new();
        for path in &files {
            let file = path.strip_prefix(SOURCES)?.to_string_lossy().into_owned();
            let text = fs::read_to_string(root.join(path))?;
            let entries: Vec<&Entry> = by_hand.iter().filter(|entry| entry.file == file).collect();
            match Source::read(&file, &text, &entries, &keep_const) {
                Ok(source) => sources.push(source),
                Err(error) => wrong.push(format!("{error:#}")),
            }
        }
        let is_mutated = |entry: &&Entry| files.iter().any(|path| path.ends_with(&entry.file));
        wrong.extend(by_hand.iter().filter(|entry| !is_mutated(entry)).map(|entry| {
            let Entry { name, file, .. } = entry;
            format!("by-hand mutant `{name}`: there is no mutated file {file}; correct or remove the entry")
        }));
        if !wrong.is_empty() {
            bail!("{}", wrong.join("\n"));
        }
        Ok(Self { sources, keep_const, dropped: BTreeSet::new(), chosen: None })
    }

    /// Every mutant with its number; numbers are for one build.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Mutant)> {
        self.sources.iter().flat_map(|source| &source.mutants).enumerate().map(|(id, mutant)| (id as u32, mutant))
    }

    /// Drops what a text of [`Mutants::dropped_with_files`] names, of files that are as they were.
    pub fn forget(&mut self, text: &str) {
        let same: BTreeSet<String> = self.sources.iter().map(hash).collect();
        let known = text.lines().filter_map(|line| line.split_once(' '));
        let known = known.filter(|(hash, identity)| same.contains(*hash) && !identity.contains(BY_HAND));
        self.dropped = known.map(|(_, identity)| identity.to_owned()).collect();
    }

    /// The dropped mutants, each with a hash of its file.
    pub fn dropped_with_files(&self) -> String {
        let mut text = String::new();
        for source in &self.sources {
            let hash = hash(source);
            let identities = source.mutants.iter().map(|mutant| &mutant.identity);
            identities.filter(|identity| self.dropped.contains(*identity)).for_each(|identity| {
                text.extend([&hash, " ", identity, "\n"]);
            });
        }
        text
    }

    fn write(&self, copy: &Copy) -> Result<Vec<Written>> {
        let mut first = 0;
        let mut written = Vec::new();
        for source in &self.sources {
            let kept = |mutant: usize| {
                let identity = &source.mutants[mutant].identity;
                let is_chosen = self.chosen.as_ref().is_none_or(|chosen| chosen.contains(identity));
                let is_in = is_chosen && !self.dropped.contains(identity);
                is_in.then_some((first + mutant) as u32)
            };
            let out = render::write(source, &kept);
            copy.write(&Path::new(SOURCES).join(&source.file), out.text.as_bytes())?;
            first += source.mutants.len();
            written.push(out);
        }
        copy.write_switch(first)?;
        Ok(written)
    }

    /// Drops every mutant that an error is about; how many. Functions that must stay `const` are
    /// added to `keep_const`.
    fn drop_those_in(&mut self, errors: &[Value], written: &[Written]) -> Result<usize> {
        let before = (self.dropped.len(), self.keep_const.len());
        for error in errors {
            if let Some(name) = not_const(error) {
                self.keep_const.push(name);
                continue;
            }
            let blamed = self.blamed(error, written);
            self.dropped.extend(blamed);
        }
        let dropped = self.dropped.len() + self.keep_const.len() - before.0 - before.1;
        if dropped == 0 {
            let text = |error: &Value| error["rendered"].as_str().unwrap_or_default().to_owned();
            bail!(
                "the copy does not compile, and no mutant is to blame:\n{}",
                errors.first().map(text).unwrap_or_default()
            );
        }
        Ok(dropped)
    }
}

impl Mutants {
    /// The identities of the mutants that an error is about: what is written around its main span,
    /// or in it. If there is none, those between its spans, suspects first, after which a value is
    /// used that is gone or still borrowed. A mutant by hand is blamed last: somebody compiled it.
    fn blamed(&self, error: &Value, written: &[Written]) -> Vec<String> {
        let in_file = |(name, range): (String, Range<usize>)| {
            let file = self.sources.iter().position(|source| name == format!("{SOURCES}/{}", source.file))?;
            Some((file, range))
        };
        let spans: Vec<(usize, Range<usize>)> = spans(error).into_iter().filter_map(in_file).collect();
        let identity = |file: usize, mutant: &usize| self.sources[file].mutants[*mutant].identity.clone();
        let blame = |spans: &[(usize, Range<usize>)]| {
            let (file, mutants) = spans.iter().find_map(|(file, range)| Some((*file, written[*file].blame(range)?)))?;
            Some(mutants.iter().map(|mutant| identity(file, mutant)).collect::<Vec<_>>())
        };
        let is_by_hand = |identity: &String| identity.contains(BY_HAND);
        match blame(&spans[..spans.len().min(1)]) {
            Some(identities) if !identities.iter().all(is_by_hand) => {
                return identities.into_iter().filter(|identity| !is_by_hand(identity)).collect();
            }
            _ => {}
        }
        let Some((file, first)) = spans.first() else { return Vec::new() };
        let around = spans
            .iter()
            .filter(|(other, _)| other == file)
            .fold(first.clone(), |hull, (_, range)| hull.start.min(range.start)..hull.end.max(range.end));
        let inside = |range: &Range<usize>| around.start <= range.start && range.end <= around.end;
        let pieces = written[*file].pieces.iter().filter(|piece| inside(&piece.range));
        let mut identities: Vec<String> =
            pieces.flat_map(|piece| &piece.mutants).map(|mutant| identity(*file, mutant)).collect();
        if !identities.iter().all(is_by_hand) {
            identities.retain(|identity| !is_by_hand(identity));
        }
        let of = |operator: &&&str| identities.iter().any(|identity| identity.contains(*operator));
        match SUSPECTS.iter().find(of) {
            Some(operator) => identities.into_iter().filter(|identity| identity.contains(operator)).collect(),
            None => blame(&spans).unwrap_or_default(),
        }
    }
}

/// A hash of a file's name and text.
fn hash(source: &Source) -> String {
    let mut hasher = DefaultHasher::new();
    (&source.file, &source.text).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let from = root.join(folder);
    for entry in fs::read_dir(&from).with_context(|| format!("cannot list {}", from.display()))? {
        let path = folder.join(entry?.file_name());
        if root.join(&path).is_dir() {
            collect(root, &path, files)?;
        } else if tree::is_mutated(&path) {
            files.push(path);
        }
    }
    Ok(())
}

/// The function of which an error says that it must be `const`.
fn not_const(error: &Value) -> Option<String> {
    if error["code"]["code"] != "E0015" {
        return None;
    }
    let message = error["message"].as_str()?;
    let path = message.split('`').nth(1)?;
    Some(path.rsplit("::").next()?.to_owned())
}

/// The spans of an error, primary ones first: file and bytes.
fn spans(error: &Value) -> Vec<(String, Range<usize>)> {
    let all = error["spans"].as_array().map_or(&[][..], Vec::as_slice);
    let (first, rest): (Vec<&Value>, Vec<&Value>) = all.iter().partition(|span| span["is_primary"] == true);
    let read = |span: &&Value| {
        let at = |key: &str| span[key].as_u64().map(|at| at as usize);
        Some((span["file_name"].as_str()?.to_owned(), at("byte_start")?..at("byte_end")?))
    };
    first.iter().chain(&rest).filter_map(read).collect()
}

/// A program of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// `ftl` or `crash`, and the name of the file of tests.
    pub name: String,
    /// The file to run.
    pub executable: PathBuf,
}

fn cargo(copy: &Copy, arguments: &[&str], incremental: &str) -> Result<(bool, Vec<Value>)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .args(["--locked", "--message-format=json", "--target-dir"])
        .arg(&copy.target)
        .current_dir(&copy.tree)
        .env_remove("CARGO_TARGET_DIR")
        .env("RUSTFLAGS", "--cap-lints=allow")
        .env("CARGO_INCREMENTAL", incremental)
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_PROFILE_TEST_DEBUG", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .context("cargo cannot be started")?;
    let lines = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if !output.status.success() && messages.iter().all(|message| message["reason"] != "compiler-message") {
        bail!("cargo {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok((output.status.success(), messages))
}

fn errors(messages: Vec<Value>) -> Vec<Value> {
    let errors = messages.into_iter().filter(|message| message["reason"] == "compiler-message");
    errors.map(|mut message| message["message"].take()).filter(|message| message["level"] == "error").collect()
}

/// Writes the mutants and drops those that do not compile, until the rest does. After each check
/// `say` is given them and how many were dropped.
///
/// # Errors
/// If the copy does not compile for another reason.
pub fn settle(
    copy: &Copy,
    root: &Path,
    by_hand: &[Entry],
    mut mutants: Mutants,
    say: &dyn Fn(&Mutants, usize),
) -> Result<Mutants> {
    for _ in 0..ROUNDS {
        let written = mutants.write(copy)?;
        let (done, messages) = cargo(copy, &["check", "-p", "openftl-ftl", "--lib"], "1")?;
        if done {
            refuse_dropped_by_hand(&mutants)?;
            return Ok(mutants);
        }
        let consts = mutants.keep_const.len();
        let dropped = mutants.drop_those_in(&errors(messages), &written)?;
        say(&mutants, dropped);
        if mutants.keep_const.len() > consts {
            let Mutants { dropped, chosen, keep_const, .. } = mutants;
            mutants = Mutants { dropped, chosen, ..Mutants::read(root, by_hand, keep_const)? };
        }
    }
    bail!("after {ROUNDS} checks the copy still does not compile; look at {}", copy.tree.display())
}

fn refuse_dropped_by_hand(mutants: &Mutants) -> Result<()> {
    match mutants.dropped.iter().find(|identity| identity.contains(BY_HAND)) {
        Some(identity) => bail!("{identity} does not compile; correct its entry"),
        None => Ok(()),
    }
}

/// Builds the tests of both crates and the explorer; if `quick`, without the integration tests.
///
/// # Errors
/// If they do not compile.
pub fn tests(copy: &Copy, quick: bool) -> Result<Vec<Binary>> {
    let which: &[&str] = if quick { &["--lib", "--test", "mutant_explorer"] } else { &["--tests"] };
    let packages = ["test", "--no-run", "-p", "openftl-ftl", "-p", "openftl-crash"];
    let (done, messages) = cargo(copy, &[&packages[..], which].concat(), "0")?;
    if !done {
        let text: Vec<String> =
            errors(messages).iter().filter_map(|error| error["rendered"].as_str().map(str::to_owned)).collect();
        bail!("the tests of the copy do not compile:\n{}", text.join("\n"));
    }
    let binary = |message: &Value| {
        let executable = PathBuf::from(message["executable"].as_str()?);
        let manifest = message["manifest_path"].as_str()?;
        let package = Path::new(manifest).parent()?.file_name()?.to_string_lossy().into_owned();
        let name = format!("{package} {}", message["target"]["name"].as_str()?);
        (message["profile"]["test"] == true).then_some(Binary { name, executable })
    };
    Ok(messages.iter().filter_map(binary).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Mutants {
        Mutants { sources: vec![Source::read("a.rs", text, &[], &[]).unwrap()], ..Mutants::default() }
    }

    #[test]
    fn a_mutant_by_hand_is_blamed_last() {
        let text = "fn f(a: A) { let b = a; b.take(); h(b.len() < 2); g(a.len()); }";
        let text_of = |text: &str| text.to_owned();
        let entry = Entry {
            name: text_of("none"),
            file: text_of("a.rs"),
            function: text_of("f"),
            find: text_of("a.len()"),
            replace: text_of("0"),
        };
        let source = Source::read("a.rs", text, &[&entry], &[]).unwrap();
        let by_hand = source.mutants.iter().position(|mutant| mutant.identity.contains(BY_HAND)).unwrap();
        let mutants = Mutants { sources: vec![source], ..Mutants::default() };
        let blamed = |kept: &dyn Fn(usize) -> Option<u32>| {
            let written = render::write(&mutants.sources[0], kept);
            let span = |text: &str, is_primary: bool| {
                let start = written.text.find(text).unwrap();
                let (file, end) = (format!("{SOURCES}/a.rs"), start + text.len());
                serde_json::json!({ "file_name": file, "byte_start": start, "byte_end": end, "is_primary": is_primary })
            };
            let error = serde_json::json!({ "spans": [span("a.len()", true), span("let b = a", false)] });
            mutants.blamed(&error, std::slice::from_ref(&written))
        };
        let likely = |mutant: usize| mutants.sources[0].mutants[mutant].identity.contains("#skip-");
        let every = blamed(&|mutant| Some(mutant as u32));
        let unlikely = blamed(&|mutant| (!likely(mutant)).then_some(mutant as u32));
        for blamed in [every, unlikely] {
            assert!(!blamed.is_empty() && blamed.iter().all(|identity| !identity.contains(BY_HAND)), "{blamed:?}");
        }
        let alone = blamed(&|mutant| (mutant == by_hand).then_some(0));
        assert_eq!(alone, [mutants.sources[0].mutants[by_hand].identity.clone()]);
    }

    #[test]
    fn what_was_dropped_of_a_file_is_known_until_the_file_changes() {
        let text = "fn f(a: u8) -> bool { a < 3 }";
        let mut mutants = read(text);
        mutants.dropped.insert("a.rs::f#relation:1".to_owned());
        let kept = mutants.dropped_with_files();
        let mut same = read(text);
        same.forget(&kept);
        assert_eq!(same.dropped, mutants.dropped);
        let mut changed = read("fn f(a: u8) -> bool { a < 4 }");
        changed.forget(&kept);
        assert!(changed.dropped.is_empty());
    }
}
