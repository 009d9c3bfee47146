//! What was explored and what was found.

use crate::explorer::Stats;
use crate::story::{Effort, Event};
use nand::CutOutcome;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The result of a run over the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The seed: the same options give the same report, but for the times.
    pub seed: u64,
    /// The mode's name.
    pub mode: &'static str,
    /// Cuts in a row.
    pub depth: u32,
    /// One row for each FTL asked for, mountable or not.
    pub ftls: Vec<FtlReport>,
}

impl Report {
    /// Whether no FTL broke a promise.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.ftls.iter().all(|ftl| ftl.failures.is_empty())
    }
}

/// What was explored of one FTL.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FtlReport {
    /// Its name.
    pub name: &'static str,
    /// What is there after power loss, as its row of the table says.
    pub promise: &'static str,
    /// Why nothing was explored.
    pub not_mountable: Option<String>,
    /// The shapes of device it was explored on.
    pub shapes: Vec<&'static str>,
    /// Images that a cut left, each of them recovered, checked, written to and mounted again.
    pub cut_points: u64,
    /// How many of them after one cut, two, three.
    pub by_depth: Vec<u64>,
    /// How many of them by what the interrupted operation left.
    pub by_outcome: BTreeMap<&'static str, u64>,
    /// Runs of the other scenarios.
    pub other_runs: BTreeMap<&'static str, u64>,
    /// What each kind of fault cost.
    pub by_fault: BTreeMap<&'static str, Tally>,
    /// Acknowledged writes that were gone or undone after a cut without the battery that the FTL
    /// assumes, over all cut points.
    pub lost_writes: u64,
    /// The mount that took longest, of all that followed a cut or a clean end.
    pub slowest_mount: Effort,
    /// One number for every flash operation and every answer, in order. The same options give the
    /// same number as long as the FTL does the same.
    #[serde(serialize_with = "as_hex")]
    pub trail: u64,
    /// What went wrong.
    pub failures: Vec<Failure>,
    /// Time spent on cut points.
    pub seconds: f64,
    /// Cut points explored a second.
    pub cuts_per_s: f64,
}

/// Some readers of JSON keep only 53 bits of a number.
fn as_hex<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{number:016x}"))
}

/// The name of a battery's death among faults.
pub(crate) const DYING: &str = "battery dies in its save";

/// What a fault cost where no promise was broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Cut points or scenarios.
    pub runs: u64,
    /// Pages that read as an error, because the device took them or metadata.
    pub errors: u64,
    /// Pages that read as an older version, because not even their spare area could be read.
    pub older: u64,
    /// Trims undone, before a flush made them durable or because the device took metadata.
    pub trims_undone: u64,
    /// Mounts and calls that were refused with an error.
    pub refused: u64,
    /// Acknowledged writes that were gone or undone without the battery that the FTL assumes.
    pub lost: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.errors += other.errors;
        self.older += other.older;
        self.trims_undone += other.trims_undone;
        self.refused += other.refused;
        self.lost += other.lost;
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Replays it exactly: see [`crate::replay`].
    pub id: String,
    /// What happened.
    pub what: String,
    /// The device: its name, and what it is if it was drawn by chance.
    pub shape: String,
    /// The scenario or the faults laid over the cuts.
    pub faults: String,
    /// The cuts: operation of the line, and what it left.
    pub cuts: Vec<String>,
    /// The smallest workload found.
    pub workload: Vec<String>,
    /// Steps done after each recovery, from the one after the cut on, over and over.
    pub tail: u32,
}

/// A replay, told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    /// What happened, in order. What follows a cut comes before the rest of what was interrupted.
    pub events: Vec<Event>,
    /// The broken promise that ended it; none if everything went well.
    pub failure: Option<Failure>,
}

/// The name of an outcome in reports.
#[must_use]
pub const fn outcome_name(outcome: CutOutcome) -> &'static str {
    match outcome {
        CutOutcome::NotDone => "not-done",
        CutOutcome::Done => "done",
        CutOutcome::Torn => "torn",
        CutOutcome::TornData => "torn-data",
        CutOutcome::TornOnce => "torn-once",
        CutOutcome::Weak => "weak",
        CutOutcome::PartnerLost => "partner-lost",
        CutOutcome::HalfErased => "half-erased",
        CutOutcome::Fading(1) => "fading-1",
        CutOutcome::Fading(2) => "fading-2",
        CutOutcome::Fading(3) => "fading-3",
        CutOutcome::Fading(_) => "fading-4",
        CutOutcome::Vanishing(2) => "vanishing-2",
        CutOutcome::Vanishing(_) => "vanishing-4",
        CutOutcome::Flaky => "flaky",
        CutOutcome::FlakyWhole => "flaky-whole",
        CutOutcome::Garbage => "garbage",
        CutOutcome::HalfErasedOddly => "half-erased-oddly",
        CutOutcome::HalfErasedQuietly => "half-erased-quietly",
        CutOutcome::Altered => "altered",
        CutOutcome::Paling(2) => "paling-2",
        CutOutcome::Paling(_) => "paling-4",
        CutOutcome::HalfErasedFalsely => "half-erased-falsely",
        CutOutcome::Reading => "reading",
        _ => "unknown",
    }
}

impl FtlReport {
    /// Takes in an exploration of cuts under a fault of this name.
    pub(crate) fn add(&mut self, fault: &'static str, stats: &Stats) {
        self.cut_points += stats.cut_points;
        self.lost_writes += stats.tally.lost + stats.saving.lost;
        *self.by_fault.entry(fault).or_default() += stats.tally;
        if stats.saving.runs > 0 {
            *self.by_fault.entry(DYING).or_default() += stats.saving;
        }
        if stats.slowest_mount.microseconds > self.slowest_mount.microseconds {
            self.slowest_mount = stats.slowest_mount;
        }
        self.by_depth.resize(stats.depths.len(), 0);
        self.by_depth.iter_mut().zip(stats.depths).for_each(|(sum, n)| *sum += n);
        for (outcome, n) in CutOutcome::ALL.iter().zip(stats.outcomes).filter(|(_, n)| *n > 0) {
            *self.by_outcome.entry(outcome_name(*outcome)).or_default() += n;
        }
    }
}
