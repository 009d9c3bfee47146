//! What a file of Rust offers to mutate: its functions, read as syntax, become [`Mutant`]s and the
//! [`Sites`] where the copy switches between them.

use super::hand::Entry;
use super::operators::Reader;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ops::Range;

/// One change of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Names it as long as its function stands: `path::function#operator:n`.
    pub identity: String,
    /// File, below the mutated crate's `src`.
    pub file: String,
    /// Its line today, from 1.
    pub line: usize,
    /// What it does, in a line.
    pub what: String,
}

impl Mutant {
    /// The top folder of its file.
    pub fn folder(&self) -> &str {
        self.file.split('/').next().unwrap_or_default()
    }
}

/// How a site is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An expression: `(if on(1) { variant } else { original })`.
    Value,
    /// A statement: `if on(1) { variant } else { original }`.
    Statement,
    /// The beginning of a body: `if on(1) { variant }`, before what follows.
    Entry,
    /// The word `const` of a function, which cannot switch: it is left out.
    Const,
}

/// Where the copy switches.
#[derive(Clone, Debug)]
pub struct Site {
    /// How it is written.
    pub form: Form,
    /// Mutants, by their place in the list, and what each puts there.
    pub variants: Vec<(usize, String)>,
    /// Of the word `const`, the body of its function: it is left out if a mutant is in there.
    pub body: Range<usize>,
}

/// Sites by first byte and, at the same byte, the longest first.
pub type Sites = BTreeMap<(usize, std::cmp::Reverse<usize>), Site>;

/// A file with its mutants.
#[derive(Debug, Default)]
pub struct Source {
    /// File, below the mutated crate's `src`.
    pub file: String,
    /// Its text.
    pub text: String,
    /// Its mutants, in the order of identity's numbers.
    pub mutants: Vec<Mutant>,
    /// Its sites; mutants by their place in `mutants`.
    pub sites: Sites,
}

impl Source {
    /// Reads a file; `by_hand` are the entries of the table that name it. Functions of the names in
    /// `keep_const` are left alone.
    ///
    /// # Errors
    /// If the file does not parse or an entry does not fit.
    pub fn read(file: &str, text: &str, by_hand: &[&Entry], keep_const: &[String]) -> Result<Self> {
        let syntax = syn::parse_file(text).with_context(|| format!("{file} does not parse"))?;
        let mut reader = Reader::new(file, text, keep_const);
        reader.read(&syntax);
        let added = by_hand.iter().map(|entry| by_hand_mutant(&mut reader, entry));
        let wrong: Vec<String> = added.filter_map(Result::err).map(|error| format!("{error:#}")).collect();
        if !wrong.is_empty() {
            bail!("{}", wrong.join("\n"));
        }
        Ok(reader.finish())
    }
}

/// Adds a mutant of the table.
fn by_hand_mutant(reader: &mut Reader, entry: &Entry) -> Result<()> {
    let place = || format!("by-hand mutant `{}` ({}::{})", entry.name, entry.file, entry.function);
    let bodies: Vec<Range<usize>> =
        reader.functions.iter().filter(|(name, _)| *name == entry.function).map(|(_, body)| body.clone()).collect();
    if bodies.is_empty() {
        bail!("{}: the file has no such function outside tests; correct or remove the entry", place());
    }
    let find = entry.find.trim();
    let found: Vec<usize> = bodies
        .iter()
        .flat_map(|body| reader.text[body.clone()].match_indices(find).map(move |(at, _)| body.start + at))
        .collect();
    // What an assertion repeats cannot be switched: the reader does not look into a macro.
    let form = |start: usize| Some((start, *reader.nodes.get(&(start, start + find.len()))?));
    let switchable: Vec<(usize, Form)> = found.iter().filter_map(|&start| form(start)).collect();
    let [(start, form)] = switchable[..] else {
        if switchable.is_empty() && !found.is_empty() {
            bail!("{}: `{find}` is no whole expression or statement that can be switched", place());
        }
        let times = switchable.len();
        bail!("{}: `{find}` occurs {times} times in the function, not once; correct the entry", place());
    };
    let range = start..start + find.len();
    let what = format!("`{}` becomes `{}`", one_line(find), one_line(&entry.replace));
    reader.name_by_hand(&entry.function, &entry.name, range, form, entry.replace.trim(), what);
    Ok(())
}

/// A text on one line, shortened.
pub fn one_line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match joined.char_indices().nth(70) {
        Some((end, _)) => format!("{}…", &joined[..end]),
        None => joined,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Source {
        Source::read("a.rs", text, &[], &[]).unwrap()
    }

    fn identities(text: &str) -> Vec<String> {
        read(text).mutants.into_iter().map(|mutant| mutant.identity).collect()
    }

    fn has(text: &str, end: &str) -> bool {
        identities(text).iter().any(|identity| identity.ends_with(end))
    }

    #[test]
    fn each_operator_finds_its_place() {
        for (text, end) in [
            ("fn f(a: u8, b: u8) { g(a < b); }", "#relation:1"),
            ("fn f(a: bool, b: bool) { g(a && b); }", "#logic:1"),
            ("fn f(a: bool, b: bool) { g(a && b); }", "#operand:2"),
            ("fn f(a: bool) { g(!a); }", "#not:1"),
            ("fn f(a: bool) { if a { g() } else { h() } }", "#condition-false:1"),
            ("fn f(a: bool) { if a { g() } }", "#condition-true:1"),
            ("fn f(a: u8) { match a { 1 if h(a) => g(), _ => {} } }", "#condition-true:1"),
            ("fn f(a: bool) { while a { g() } }", "#condition-false:1"),
            ("fn f(a: u8) -> u8 { a + 1 }", "#drop-one:1"),
            ("fn f(a: u8) -> u8 { a + a }", "#plus-minus:1"),
            ("fn f(a: u8) -> u8 { a.max(3) }", "#max-min:1"),
            ("fn f(a: A) { a.g(); }", "#skip-call:1"),
            ("fn f(a: A) -> R { a.g()?; Ok(()) }", "#skip-call:1"),
            ("fn f(a: &mut u8) { *a = 3; }", "#skip-assign:1"),
            ("fn f(a: A) { a.retain(|x| x.is_y()); }", "#closure-true:1"),
            ("fn f(a: bool) { if a { g(); return; } h(); }", "#skip-return:1"),
            ("fn f() -> Option<u8> { g() }", "#body-none:1"),
            ("fn f() -> bool { g() }", "#body-true:1"),
            ("fn f() -> Result<(), E> { g() }", "#body-skip:1"),
            ("fn f(a: u8) { g(a, 7); }", "#constant:1"),
            ("const LIMIT: u8 = 3; fn f(a: u8) { g(LIMIT); }", "LIMIT#named-constant:1"),
        ] {
            assert!(has(text, end), "{text}: {:?}", identities(text));
        }
    }

    #[test]
    fn what_cannot_switch_or_is_a_test_is_left_alone() {
        for text in [
            "const fn f(a: u8) -> bool { a < 3 }",
            "const A: bool = 1 < 2;",
            "fn f() { let _: [u8; 1 + 2]; }",
            "fn f() { assert!(1 < 2); }",
            "#[cfg(test)] mod tests { fn f(a: u8) -> bool { a < 3 } }",
            "#[test] fn f() { g(1 < 2); }",
            "fn f(a: u8) -> u8 { let b = match a { 1..3 => a, _ => a }; b }",
        ] {
            let left: Vec<String> =
                identities(text).into_iter().filter(|identity| !identity.contains("#body-")).collect();
            assert_eq!(left, Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn an_identity_outlives_a_move_of_lines() {
        let text = "impl A { fn f(&self, a: u8) -> bool { a < 3 || a > 7 } }";
        let moved = format!("// one\n\nfn g(a: u8) -> bool {{ a < 3 }}\n{text}");
        let before = identities(text);
        assert!(before.contains(&"a.rs::A::f#relation:2".to_owned()), "{before:?}");
        assert!(before.iter().all(|identity| identities(&moved).contains(identity)));
        let line = |text: &str| read(text).mutants.iter().find(|m| m.identity == before[0]).unwrap().line;
        assert_eq!((line(text), line(&moved)), (1, 4));
    }

    #[test]
    fn an_entry_by_hand_must_fit_once() {
        let text = "fn f(a: u8) { g(a, a); h(a); }";
        let entry = |function: &str| Entry {
            name: "x".into(),
            file: "a.rs".into(),
            function: function.into(),
            ..Entry::default()
        };
        let read = |find: &str, function: &str| {
            let entry = Entry { find: find.into(), replace: "9".into(), ..entry(function) };
            Source::read("a.rs", text, &[&entry], &[]).map_err(|error| error.to_string())
        };
        assert!(read("g(a, a)", "f").unwrap().mutants.iter().any(|m| m.identity == "a.rs::f#by-hand:x"));
        assert!(read("a", "f").unwrap_err().contains("3 times"));
        let repeated = "fn f(a: u8) { debug_assert!(g(a), \"g(a)\"); h(g(a)); }";
        let entry = Entry { find: "g(a)".into(), replace: "9".into(), ..entry("f") };
        assert!(Source::read("a.rs", repeated, &[&entry], &[]).is_ok());
        assert!(read("g(b)", "f").unwrap_err().contains("0 times"));
        assert!(read("g(a,", "f").unwrap_err().contains("no whole expression"));
        assert!(read("h(a)", "g").unwrap_err().contains("no such function"));
    }
}
