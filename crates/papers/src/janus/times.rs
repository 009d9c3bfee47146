//! What time is spent on, in the terms of Janus-FTL's paper.

use crate::figure::Run;
use crate::outcome::{Bar, Cell, Chart, DataTable, Part};
use ftl::Purpose;

/// What the paper calls performance: seconds of all flash operations of the measured part, one
/// after the other.
#[must_use]
pub fn total_s(run: &Run) -> f64 {
    Time::ALL.iter().map(|time| time.seconds(run)).sum()
}

/// What time is spent on, as in the paper's Figure 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// The sectors that were asked for.
    Data,
    /// Reading and writing maps.
    Map,
    /// Making room: collections, merges, defusions.
    Recycling,
}

impl Time {
    /// All, in the order of the figure.
    pub const ALL: [Self; 3] = [Self::Data, Self::Map, Self::Recycling];

    /// Its name in charts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data time",
            Self::Map => "map time",
            Self::Recycling => "GC time",
        }
    }

    const fn of(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Host => Self::Data,
            Purpose::Gc | Purpose::Wear | Purpose::Refresh => Self::Recycling,
            _ => Self::Map,
        }
    }

    /// Seconds of a run spent on it.
    #[must_use]
    pub fn seconds(self, run: &Run) -> f64 {
        let parts = run.result.flash.iter().filter(|(purpose, _)| Self::of(*purpose) == self);
        parts.map(|(_, flash)| run.experiment.spec.device.serial_seconds(flash)).sum()
    }
}

/// A bar for each run, its parts what time was spent on.
#[must_use]
pub fn times_chart(runs: &[Run]) -> Chart {
    let parts = |run: &Run| Time::ALL.map(|time| Part::new(time.name(), time.seconds(run))).into();
    Chart::Bars {
        name: String::new(),
        title: "time of all flash operations".to_owned(),
        axis: "seconds, one operation after the other".to_owned(),
        bars: runs.iter().map(|run| Bar { label: run.experiment.series.clone(), parts: parts(run) }).collect(),
    }
}

/// The same as a table, with write-amplification and erases.
#[must_use]
pub fn times_table(runs: &[Run]) -> DataTable {
    let mut table = DataTable::new(
        "",
        "time of all flash operations",
        &[
            "run",
            "data, s",
            "maps, s",
            "recycling, s",
            "total, s",
            "host pages written",
            "write-amplification (programs)",
            "erases",
        ],
    );
    for run in runs {
        let erases: u64 = run.result.flash.iter().map(|(_, flash)| flash.erases).sum();
        let mut row = vec![Cell::from(run.experiment.series.as_str())];
        row.extend(Time::ALL.map(|time| Cell::from(time.seconds(run))));
        row.extend([
            total_s(run).into(),
            run.result.host.writes.into(),
            run.result.write_amplification.programs_per_write.into(),
            erases.into(),
        ]);
        table.row(row);
    }
    table
}
