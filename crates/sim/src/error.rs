//! Why a run could not be finished.

use nand::{Lpn, Stamp};

/// Why a run could not be finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// No row of the table has this name.
    #[error("there is no FTL named `{name}`; known are: {known}")]
    UnknownFtl {
        /// What was asked for.
        name: String,
        /// Names in the table, separated by commas.
        known: String,
    },
    /// The device plan or an option does not make sense.
    #[error("{what}: {reason}")]
    BadSpec {
        /// Which option.
        what: &'static str,
        /// What is wrong and what to change.
        reason: String,
    },
    /// A geometry was refused.
    #[error("device `{device}`: {source}")]
    Geometry {
        /// The device's name.
        device: String,
        /// Why.
        source: nand::GeometryError,
    },
    /// The workload could not be made or read on.
    #[error("workload `{workload}`: {reason}")]
    Workload {
        /// Its name.
        workload: String,
        /// Why.
        reason: String,
    },
    /// The FTL failed.
    #[error("{ftl} failed while {doing}: {source}")]
    Ftl {
        /// The FTL's name.
        ftl: String,
        /// What it was asked to do.
        doing: String,
        /// Its answer.
        source: ftl::FtlError,
    },
    /// A read returned something other than what was last written: the FTL lost or confused data.
    #[error(
        "{ftl} returned wrong data for {lpn}: expected {}, found {} ({during})",
        describe(*.expected),
        describe(*.found)
    )]
    WrongData {
        /// The FTL's name.
        ftl: String,
        /// The logical page read.
        lpn: Lpn,
        /// What was last written there.
        expected: Stamp,
        /// What the read returned.
        found: Stamp,
        /// In which part of the run.
        during: &'static str,
    },
}

fn describe(stamp: Stamp) -> String {
    if stamp == Stamp::UNWRITTEN {
        "no data".to_owned()
    } else {
        format!("write {} of logical page {}", stamp.version, stamp.lpn.0)
    }
}
