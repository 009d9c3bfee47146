//! What came of the mutants, for people and for programs.

use super::checks::Verdict;
use super::source::Mutant;
use super::tree::SOURCES;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A mutant that was run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which.
    pub mutant: Mutant,
    /// What came of it.
    pub verdict: Verdict,
    /// How long that took.
    pub seconds: f64,
}

impl Outcome {
    fn is_killed(&self) -> bool {
        matches!(self.verdict, Verdict::Killed { .. })
    }

    /// It on one line.
    pub fn line(&self) -> String {
        let verdict = match &self.verdict {
            Verdict::Killed { by, late: false } => format!("killed by {by}"),
            Verdict::Killed { by, late: true } => format!("killed by the clock in {by}"),
            Verdict::Survived => "SURVIVED".to_owned(),
            Verdict::Unreached => "NOT REACHED by any check".to_owned(),
        };
        format!("{verdict}: {}", described(&self.mutant))
    }
}

fn described(mutant: &Mutant) -> String {
    format!("{SOURCES}/{}:{}: {} [{}]", mutant.file, mutant.line, mutant.what, mutant.identity)
}

/// Prints the mutants.
///
/// # Errors
/// Never: the command's type.
pub fn list<'a>(mutants: impl Iterator<Item = &'a Mutant>, as_json: bool) -> Result<bool> {
    if as_json {
        let rows: Vec<Value> = mutants.map(row).collect();
        println!("{}", json!({ "mutants": rows }));
    } else {
        mutants.for_each(|mutant| println!("{}", described(mutant)));
    }
    Ok(true)
}

fn row(mutant: &Mutant) -> Value {
    let file = format!("{SOURCES}/{}", mutant.file);
    json!({ "identity": mutant.identity, "file": file, "line": mutant.line, "what": mutant.what })
}

/// Killed mutants, and those that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Those that a check saw.
    pub killed: usize,
    /// Those that were run, but for the accepted survivors.
    pub counted: usize,
}

impl Score {
    /// In percent; of none, all.
    pub fn percent(self) -> f64 {
        if self.counted == 0 { 100.0 } else { 100.0 * self.killed as f64 / self.counted as f64 }
    }
}

/// Everything that is said at the end.
pub struct Report {
    /// The mutants that were run.
    pub outcomes: Vec<Outcome>,
    /// Accepted survivors: identity and reason.
    pub accepted: BTreeMap<String, String>,
    /// Every identity.
    pub known: BTreeSet<String>,
    /// Those that do not compile.
    pub dropped: BTreeSet<String>,
    /// How many there are.
    pub total: usize,
    /// The score, in percent, below which a survivor that is not accepted is a failure.
    pub limit: f64,
}

impl Report {
    /// The score of the outcomes in a folder, or of all.
    fn score(&self, folder: Option<&str>) -> Score {
        let inside = |outcome: &&Outcome| folder.is_none_or(|folder| outcome.mutant.folder() == folder);
        let counts = |outcome: &&Outcome| outcome.is_killed() || !self.is_accepted(outcome);
        let counted: Vec<&Outcome> = self.outcomes.iter().filter(inside).filter(counts).collect();
        Score { killed: counted.iter().filter(|outcome| outcome.is_killed()).count(), counted: counted.len() }
    }

    fn is_accepted(&self, outcome: &Outcome) -> bool {
        self.accepted.contains_key(&outcome.mutant.identity)
    }

    fn survivors(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| !outcome.is_killed() && !self.is_accepted(outcome))
    }

    /// Entries of the accepted survivors that no longer fit, and why.
    fn stale(&self) -> Vec<(&str, &'static str)> {
        let why = |identity: &String| {
            if !self.known.contains(identity) {
                return Some("there is no such mutant");
            }
            if self.dropped.contains(identity) {
                return Some("it does not compile");
            }
            let killed = |outcome: &Outcome| outcome.mutant.identity == *identity && outcome.is_killed();
            self.outcomes.iter().any(killed).then_some("it is killed")
        };
        self.accepted.keys().filter_map(|identity| Some((&**identity, why(identity)?))).collect()
    }

    fn passes(&self) -> bool {
        self.survivors().next().is_none() || self.score(None).percent() >= self.limit
    }

    /// Prints it; whether it passes.
    pub fn print(&self, as_json: bool) -> bool {
        if as_json {
            println!("{}", self.json());
        } else {
            self.tell();
        }
        self.passes()
    }

    fn folders(&self) -> BTreeSet<&str> {
        self.outcomes.iter().map(|outcome| outcome.mutant.folder()).collect()
    }

    fn tell(&self) {
        println!("\n{:<10} {:>7} {:>7} {:>8}", "folder", "killed", "of", "score");
        let row = |name: &str, score: Score| {
            println!("{name:<10} {:>7} {:>7} {:>7.1}%", score.killed, score.counted, score.percent());
        };
        self.folders().into_iter().for_each(|folder| row(folder, self.score(Some(folder))));
        row("all", self.score(None));
        let mut by: BTreeMap<&str, usize> = BTreeMap::new();
        let mut late = 0;
        for outcome in &self.outcomes {
            if let Verdict::Killed { by: check, late: is_late } = &outcome.verdict {
                let stage = check.split(' ').next().unwrap_or_default();
                *by.entry(stage).or_default() += 1;
                late += usize::from(*is_late);
            }
        }
        let by: Vec<String> = by.iter().map(|(stage, count)| format!("{stage} {count}")).collect();
        println!("killed by: {}; {late} of them by the clock", by.join(", "));
        let seconds: f64 = self.outcomes.iter().map(|outcome| outcome.seconds).sum();
        let each = seconds / self.outcomes.len().max(1) as f64;
        let all = each * (self.total - self.dropped.len()) as f64 / super::JOBS as f64 / 60.0;
        println!("{each:.1} s a mutant; all {} would take {all:.0} min", self.total - self.dropped.len());
        let accepted = self.outcomes.iter().filter(|outcome| !outcome.is_killed() && self.is_accepted(outcome)).count();
        if accepted > 0 {
            println!("{accepted} accepted survivors do not count");
        }
        let survivors: Vec<String> = self.survivors().map(Outcome::line).collect();
        if !survivors.is_empty() {
            println!(
                "\n{} survivors. Write a test that sees each, or accept it in xtask/mutants/survivors.toml:",
                survivors.len()
            );
            survivors.iter().for_each(|line| println!("  {line}"));
        }
        for (identity, why) in self.stale() {
            println!("stale in xtask/mutants/survivors.toml: {identity}: {why}; remove the entry");
        }
        if !self.passes() {
            println!("\nfailed: the score is below {}%", self.limit);
        }
    }

    fn json(&self) -> Value {
        let score =
            |score: Score| json!({ "killed": score.killed, "counted": score.counted, "percent": score.percent() });
        let folders: serde_json::Map<String, Value> =
            self.folders().into_iter().map(|folder| (folder.to_owned(), score(self.score(Some(folder))))).collect();
        let results: Vec<Value> = self.outcomes.iter().map(|outcome| self.outcome(outcome)).collect();
        json!({
            "mutants": self.total,
            "not_compiling": self.dropped.len(),
            "score": score(self.score(None)),
            "folders": folders,
            "limit": self.limit,
            "passes": self.passes(),
            "results": results,
            "stale": self.stale().iter().map(|(identity, why)| json!({ "identity": identity, "why": why })).collect::<Vec<_>>(),
        })
    }

    fn outcome(&self, outcome: &Outcome) -> Value {
        let mut value = row(&outcome.mutant);
        let (verdict, by) = match &outcome.verdict {
            Verdict::Killed { by, late: false } => ("killed", Some(by)),
            Verdict::Killed { by, late: true } => ("killed-by-clock", Some(by)),
            Verdict::Survived => ("survived", None),
            Verdict::Unreached => ("unreached", None),
        };
        value["verdict"] = verdict.into();
        value["by"] = json!(by);
        value["seconds"] = outcome.seconds.into();
        value["accepted"] = json!(self.accepted.get(&outcome.mutant.identity));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(limit: f64) -> Report {
        let killed = || Verdict::Killed { by: "explorer page".into(), late: false };
        let rows = [
            ("engine/a.rs::f#not:1", killed()),
            ("engine/a.rs::f#not:2", Verdict::Survived),
            ("space/a.rs::f#not:1", Verdict::Unreached),
            ("space/a.rs::f#not:2", killed()),
        ];
        let outcome = |(identity, verdict): (&str, Verdict)| {
            let file = identity.split("::").next().unwrap_or_default().to_owned();
            Outcome {
                mutant: Mutant { identity: identity.into(), file, line: 1, what: String::new() },
                verdict,
                seconds: 1.0,
            }
        };
        let outcomes: Vec<Outcome> = rows.map(outcome).into();
        let accepted = ["space/a.rs::f#not:1", "space/a.rs::f#not:2", "space/a.rs::g#not:1"];
        Report {
            known: outcomes.iter().map(|outcome| outcome.mutant.identity.clone()).collect(),
            accepted: accepted.map(|identity| (identity.to_owned(), "equivalent".to_owned())).into(),
            outcomes,
            dropped: BTreeSet::new(),
            total: 4,
            limit,
        }
    }

    #[test]
    fn an_accepted_survivor_does_not_count_and_a_killed_one_is_stale() {
        let report = report(95.0);
        assert_eq!(report.score(None), Score { killed: 2, counted: 3 });
        assert_eq!(report.score(Some("space")), Score { killed: 1, counted: 1 });
        assert_eq!(report.survivors().count(), 1);
        let stale = report.stale();
        assert_eq!(
            stale,
            [("space/a.rs::f#not:2", "it is killed"), ("space/a.rs::g#not:1", "there is no such mutant")]
        );
    }

    #[test]
    fn a_survivor_fails_below_the_limit_only() {
        assert!(!report(67.0).passes());
        assert!(report(66.0).passes());
        assert_eq!(Score::default().percent(), 100.0);
    }
}
