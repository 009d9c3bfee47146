//! Traces that come with the program: what applications asked of ext4 on a disk served by `openftl
//! serve`. `scripts/record-samples` made them.

use super::{OpenOptions, Trace, read};
use crate::error::{WorkloadError, nearest};

/// A trace that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Its name, behind `sample:`.
    pub name: &'static str,
    /// What was recorded, in a line.
    pub summary: &'static str,
    /// How it was recorded.
    pub source: &'static str,
    packed: &'static [u8],
}

const SAMPLES: [Sample; 3] = [
    Sample {
        name: "sqlite",
        summary: "1500 sales of a shop in SQLite, each a transaction with a rollback journal",
        source: "SQLite 3.40 on ext4, synchronous=FULL, 512 KiB of page cache",
        packed: include_bytes!("../../samples/sqlite.csv.zst"),
    },
    Sample {
        name: "git",
        summary: "a repository is cloned, walked through its history, changed 40 times and packed",
        source: "git 2.39 on ext4, with every object synced",
        packed: include_bytes!("../../samples/git.csv.zst"),
    },
    Sample {
        name: "postgres",
        summary: "4000 transactions of pgbench at scale 4 by two clients, after its tables were made",
        source: "PostgreSQL 15 on ext4, 8 MiB of shared buffers",
        packed: include_bytes!("../../samples/postgres.csv.zst"),
    },
];

/// Every trace that comes with the program.
#[must_use]
pub fn samples() -> &'static [Sample] {
    &SAMPLES
}

/// Opens a trace that comes with the program.
///
/// # Errors
/// [`WorkloadError::Unknown`]; those of [`read`] if the options do not fit it.
pub fn sample(name: &str, options: &OpenOptions) -> Result<Trace, WorkloadError> {
    let Some(found) = SAMPLES.iter().find(|sample| sample.name == name) else {
        return Err(WorkloadError::Unknown {
            what: "sample",
            name: name.to_owned(),
            nearest: nearest(name, SAMPLES.iter().map(|sample| sample.name)),
            valid: SAMPLES.map(|sample| sample.name).join(", "),
        });
    };
    read(found.packed, &format!("sample:{name}"), options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    #[test]
    fn every_sample_is_a_trace_with_times_writes_and_flushes_and_together_they_are_small() {
        for sample in samples() {
            let trace = super::sample(sample.name, &OpenOptions::default()).unwrap();
            let count = |op| trace.records().iter().filter(|record| record.op() == op).count();
            assert!(trace.timed() && count(Op::Write) > 1000 && count(Op::Flush) > 100, "{}", sample.name);
            assert!(trace.notes().iter().all(|note| !note.contains("times go back")), "{:?}", trace.notes());
        }
        assert!(samples().iter().map(|sample| sample.packed.len()).sum::<usize>() < 2 << 20);
        let error = sample("sqlight", &OpenOptions::default()).unwrap_err().to_string();
        assert!(error.contains("did you mean `sqlite`?"), "{error}");
    }
}
