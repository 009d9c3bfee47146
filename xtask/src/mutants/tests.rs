//! The whole way of a tiny crate: its mutants compile, and the environment switches between them.

use super::{Options, build::Mutants, choose, drawn, hand, render, rolled, source::Source};
use clap::Parser;
use std::process::Command;

const SWITCH: &str = include_str!("../../mutants/inject/switch.rs");

const TINY: &str = "
struct Sum { total: u32, parts: Vec<u32> }
impl Sum {
    fn add(&mut self, part: u32) -> bool {
        if part > 3 && self.parts.len() < 2 {
            self.parts.push(part);
            self.total += part;
            return true;
        }
        false
    }
    const fn next(&self) -> u32 { self.total + 1 }
    fn last(&self) -> Option<u32> { self.parts.iter().copied().filter(|part| *part > 4).max() }
}
fn main() {
    let mut sum = Sum { total: 0, parts: Vec::new() };
    let added = [3, 4, 5, 6].map(|part| sum.add(part));
    println!(\"{added:?} {} {:?}\", sum.next(), sum.last());
}
";

fn output(program: &std::path::Path, mutant: Option<usize>) -> String {
    let mut command = Command::new(program);
    command.env_remove("OPENFTL_MUTANT").env_remove("OPENFTL_MUTANT_REACHED");
    if let Some(mutant) = mutant {
        command.env("OPENFTL_MUTANT", mutant.to_string());
    }
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn a_tiny_crate_compiles_with_all_its_mutants_and_switches() {
    let source = Source::read("tiny.rs", TINY, &[], &[]).unwrap();
    // Not `main`, which the operators would have the test end with.
    let kept = |mutant: usize| !source.mutants[mutant].identity.starts_with("tiny.rs::main");
    let written = render::write(&source, &|mutant| kept(mutant).then_some(mutant as u32));
    let folder = std::env::temp_dir().join(format!("xtask-mutants-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let switch = format!("{SWITCH}\nconst COUNT: usize = {};\n", source.mutants.len());
    std::fs::write(folder.join("mutant.rs"), switch).unwrap();
    std::fs::write(folder.join("main.rs"), format!("mod mutant;\n{}", written.text)).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let program = folder.join("tiny");
    let arguments = ["--edition=2024", "-Awarnings", "-o"];
    let built = Command::new(rustc).args(arguments).arg(&program).arg(folder.join("main.rs")).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let plain = "[false, true, true, false] 10 Some(5)\n";
    assert_eq!(output(&program, None), plain);
    let mutant = |end: &str| source.mutants.iter().position(|mutant| mutant.identity.ends_with(end)).unwrap();
    for (end, expected) in [
        ("Sum::add#relation:1", "[true, true, false, false] 8 None\n"),
        ("Sum::add#skip-call:1", "[false, true, true, true] 16 None\n"),
        ("Sum::add#skip-return:1", "[false, false, false, false] 10 Some(5)\n"),
        ("Sum::next#drop-one:1", "[false, true, true, false] 9 Some(5)\n"),
        ("Sum::last#body-none:1", "[false, true, true, false] 10 None\n"),
        ("Sum::last#max-min:1", plain),
        ("Sum::last#closure-true:1", plain),
    ] {
        assert_eq!(output(&program, Some(mutant(end))), expected, "{end}");
    }
    let notes = folder.join("notes");
    Command::new(&program).env("OPENFTL_MUTANT_REACHED", &notes).output().unwrap();
    let reached = std::fs::read_to_string(&notes).unwrap();
    let id = mutant("Sum::add#relation:1").to_string();
    assert_eq!(reached.lines().filter(|line| *line == id).count(), 1);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_sample_follows_from_its_seed_and_the_identities() {
    assert_eq!(rolled(1, "a"), rolled(1, "a"));
    assert_ne!(rolled(1, "a"), rolled(2, "a"));
    assert_ne!(rolled(1, "a"), rolled(1, "b"));
}

#[test]
fn a_sample_is_whole_although_some_of_its_mutants_do_not_compile() {
    let root = crate::root().unwrap();
    let mut mutants = Mutants::read(&root, &hand::entries(&root).unwrap(), Vec::new()).unwrap();
    let options = |arguments: &str| Options::try_parse_from(arguments.split(' ')).unwrap();
    let sample = options("mutants --sample 20 --seed 7 --in recovery/");
    mutants.chosen = Some(choose(&mutants, &[], &sample, &|_| {}));
    let identities = |mutants: &Mutants| -> Vec<String> {
        let ids = drawn(mutants, &sample).unwrap();
        ids.iter().map(|id| mutants.all().find(|(of, _)| of == id).unwrap().1.identity.clone()).collect()
    };
    let first = identities(&mutants);
    assert_eq!(first.len(), 20);
    assert!(first.iter().all(|identity| identity.contains("recovery/")), "{first:?}");
    // They give way to others that were built with them.
    mutants.dropped.extend(first[..2].iter().cloned());
    let second = identities(&mutants);
    assert_eq!(second.len(), 20);
    assert_eq!(second[..18], first[2..]);
    // One that was asked for by name has no substitute.
    let only = Options { only: vec![first[0].clone()], ..options("mutants") };
    assert_eq!(choose(&mutants, &[], &only, &|_| {}).into_iter().collect::<Vec<_>>(), first[..1]);
    assert!(drawn(&mutants, &only).unwrap_err().to_string().contains("does not compile"));
}

#[test]
fn the_whole_is_a_share_of_the_mutants_and_what_is_kept() {
    let identities: Vec<String> = (1..=4000).map(|n| format!("a.rs::f{}#not:{n}", n % 9)).collect();
    let mutants: Vec<(u32, &str)> = (0..).zip(identities.iter().map(|identity| &**identity)).collect();
    let one_in = |many, mutants: &[(u32, &str)], kept: &[String]| -> Vec<u32> {
        super::one_in(many, mutants, kept).into_iter().map(|(id, _)| id).collect()
    };
    let chosen = one_in(40, &mutants, &[]);
    assert!((80..=120).contains(&chosen.len()), "{} of 4000", chosen.len());
    assert_eq!(one_in(1, &mutants, &[]).len(), 4000);
    // The same of those that are left, whatever goes.
    let fewer: Vec<u32> = chosen.iter().copied().filter(|id| id % 2 == 0).collect();
    assert_eq!(one_in(40, &mutants.iter().copied().step_by(2).collect::<Vec<_>>(), &[]), fewer);
    let left = (0..4000).find(|id| !chosen.contains(id)).unwrap();
    assert!(one_in(40, &mutants, &[identities[left as usize].clone()]).contains(&left));
    assert_eq!(one_in(40, &[(7, "a.rs::f#by-hand:x")], &[]), [7]);
}

#[test]
fn seeds_in_a_row_share_the_whole() {
    let root = crate::root().unwrap();
    let mutants = Mutants::read(&root, &hand::entries(&root).unwrap(), Vec::new()).unwrap();
    let chosen = |arguments: &str| {
        let call = format!("mutants --all --in recovery/ {arguments}");
        let options = Options::try_parse_from(call.split_whitespace()).unwrap();
        choose(&mutants, &[], &options, &|_| {}).into_iter().collect::<Vec<_>>()
    };
    let whole = chosen("");
    let mut shares: Vec<String> = (6..9).flat_map(|seed| chosen(&format!("--share 3 --seed {seed}"))).collect();
    assert!(chosen("--share 3 --seed 6").len() < whole.len() / 2);
    shares.sort();
    assert_eq!(shares, whole);
    let seed_of_nothing = ["mutants", "--all", "--seed", "6"];
    assert!(Options::try_parse_from(seed_of_nothing).is_err(), "it would be ignored");
}

#[test]
fn the_tables_name_mutants_that_exist() {
    let root = crate::root().unwrap();
    let mutants = Mutants::read(&root, &hand::entries(&root).unwrap(), Vec::new()).unwrap();
    let known: Vec<&str> = mutants.all().map(|(_, mutant)| &*mutant.identity).collect();
    let named = hand::kept(&root).unwrap().into_iter().chain(hand::accepted(&root).unwrap().into_keys());
    let gone: Vec<String> = named.filter(|identity| !known.contains(&&**identity)).collect();
    assert!(gone.is_empty(), "these do not exist; correct or remove them: {gone:#?}");
}
