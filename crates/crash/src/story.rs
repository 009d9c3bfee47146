//! What a replay does, event by event.

use crate::case::Loss;
use crate::report::outcome_name;
use ftl::{Counts, FtlError, MountReport, OpCounts, Purpose};
use nand::Stamp;
use nand::geometry::Timing;
use serde::Serialize;

/// Flash operations, and how long they take one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Effort {
    /// Whole pages read.
    pub reads: u64,
    /// Spare areas read alone.
    pub spare_reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Spare areas programmed again to set flags; in JSON only if there are any.
    #[serde(skip_serializing_if = "is_zero")]
    pub flag_programs: u64,
    /// Microseconds, with the times of the device profile `small`.
    pub microseconds: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Effort {
    /// The effort of these operations.
    #[must_use]
    pub fn of(ops: &OpCounts) -> Self {
        let t = nand::profiles::find("small").map_or(Timing::NONE, |profile| profile.timing);
        let parts = [
            (ops.reads, t.read_ns),
            (ops.spare_reads, t.spare_read_ns),
            (ops.programs, t.program_ns),
            (ops.erases, t.erase_ns),
            (ops.flag_programs, t.program_ns),
        ];
        let microseconds = parts.iter().map(|(count, ns)| *count as f64 * *ns as f64).sum::<f64>() / 1e3;
        let OpCounts { reads, spare_reads, programs, erases, flag_programs } = *ops;
        Self { reads, spare_reads, programs, erases, flag_programs, microseconds }
    }

    /// Flash operations of any kind.
    #[must_use]
    pub const fn operations(&self) -> u64 {
        self.reads + self.spare_reads + self.programs + self.erases + self.flag_programs
    }
}

/// What one purpose took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PurposeEffort {
    /// The purpose.
    pub purpose: &'static str,
    /// Its operations.
    pub effort: Effort,
}

/// These operations by purpose, those with none left out.
pub(crate) fn efforts(counts: &Counts) -> Vec<PurposeEffort> {
    Purpose::ALL
        .into_iter()
        .map(|purpose| PurposeEffort { purpose: purpose.name(), effort: Effort::of(counts.of(purpose)) })
        .filter(|part| part.effort.operations() > 0)
        .collect()
}

/// The flash operations of a whole mount.
pub(crate) fn ops_of(report: &MountReport) -> OpCounts {
    report.steps.iter().fold(OpCounts::default(), |sum, step| OpCounts {
        reads: sum.reads + step.ops.reads,
        spare_reads: sum.spare_reads + step.ops.spare_reads,
        programs: sum.programs + step.ops.programs,
        erases: sum.erases + step.ops.erases,
        flag_programs: sum.flag_programs + step.ops.flag_programs,
    })
}

/// A step of a mount.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MountedStep {
    /// What was done.
    pub name: &'static str,
    /// What it took.
    pub effort: Effort,
}

/// What a mount found and did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mounted {
    /// The steps, in order.
    pub steps: Vec<MountedStep>,
    /// All of them together.
    pub effort: Effort,
    /// Pages that could not be read.
    pub unreadable_pages: u64,
    /// Mapping entries made from spare areas of pages of host data.
    pub rebuilt_entries: u64,
    /// Why the disk can only be read, if it cannot be written.
    pub read_only: Option<String>,
}

impl Mounted {
    fn of(report: &MountReport) -> Self {
        let step = |step: &ftl::MountStep| MountedStep { name: step.name, effort: Effort::of(&step.ops) };
        Self {
            steps: report.steps.iter().map(step).collect(),
            effort: Effort::of(&ops_of(report)),
            unreadable_pages: report.unreadable_pages,
            rebuilt_entries: report.rebuilt_entries,
            read_only: report.read_only.map(|shortage| shortage.to_string()),
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The disk was formatted.
    Format {
        /// Pages that the host sees.
        logical_pages: u32,
    },
    /// The host asked for something.
    Call {
        /// Cuts so far.
        cuts: usize,
        /// What it asked for.
        call: String,
        /// How that came out.
        outcome: String,
        /// The flash operations that it took, for each purpose that had some.
        efforts: Vec<PurposeEffort>,
        /// The number of the first operation after it that power can be cut at, counted since power
        /// came on.
        next_operation: u64,
    },
    /// Power was cut during what the host asked for last, or during the mount.
    Cut {
        /// Cuts so far, this one included.
        cuts: usize,
        /// The operation, counted since formatting began or power came on.
        operation: u64,
        /// What it left.
        outcome: &'static str,
        /// The battery died while it saved what the cut before had left in RAM.
        saving: bool,
    },
    /// The device was mounted.
    Mount {
        /// Cuts so far.
        cuts: usize,
        /// What it found and did; none if it failed.
        report: Option<Mounted>,
        /// Why it failed.
        error: Option<String>,
    },
    /// Every page was read and every invariant checked.
    Inspection {
        /// Cuts so far.
        cuts: usize,
        /// Pages that read as last written.
        expected: u32,
        /// Pages that read as another version that is allowed.
        other: u32,
        /// Pages that read as an error that is allowed.
        errors: u32,
    },
    /// A scenario other than single cuts was run as a whole.
    Scenario {
        /// Which.
        scenario: String,
    },
}

impl Event {
    pub(crate) fn cut(cuts: usize, Loss { cut, saving }: Loss) -> Self {
        Self::Cut { cuts, operation: cut.at, outcome: outcome_name(cut.outcome), saving }
    }

    pub(crate) fn mount<T>(cuts: usize, mounted: &Result<(T, MountReport), FtlError>) -> Self {
        match mounted {
            Ok((_, report)) => Self::Mount { cuts, report: Some(Mounted::of(report)), error: None },
            Err(error) => Self::Mount { cuts, report: None, error: Some(error.to_string()) },
        }
    }
}

/// How a call came out, in words.
pub(crate) fn outcome_of(outcome: &Result<Stamp, FtlError>, reads: bool) -> String {
    match outcome {
        Err(error) => error.to_string(),
        Ok(_) if !reads => "done".into(),
        Ok(stamp) if *stamp == Stamp::UNWRITTEN => "reads as never written".into(),
        Ok(stamp) => format!("reads version {} of page {}", stamp.version, stamp.lpn.0),
    }
}
