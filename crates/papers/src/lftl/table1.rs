//! Table 1 of LFTL: what the card itself gives, by which banks are read or written.

use super::setting::{Setting, card_alone, megabytes_a_second};
use crate::error::PaperError;
use crate::figure::{Conclude, Figure, no_runs};
use crate::lab::Lab;
use crate::outcome::{Chart, DataTable, Lines, Outcome, Series};
use crate::verdict::Verdict;
use ::lftl::clock::{self, together};

pub(super) const FIGURE: Figure = Figure {
    name: "lftl/table1",
    title: "read and write rates of the card, by the banks in use",
    source: super::SOURCE,
    uses_traces: false,
    plan: no_runs,
    conclude: Conclude::Own(|lab, progress| measure(lab, &Setting::paper(lab)?, progress)),
};

/// A row of the paper: which banks, how many threads, MB/s of reads and of writes.
struct Row {
    banks: &'static str,
    which: fn() -> Vec<u32>,
    threads: u32,
    paper: [f64; 2],
}

const ROWS: [Row; 9] = [
    Row { banks: "0", which: || vec![0], threads: 16, paper: [114.0, 82.0] },
    Row { banks: "0 and 1", which: || vec![0, 1], threads: 16, paper: [114.0, 155.0] },
    Row { banks: "0 and 2", which: || vec![0, 2], threads: 16, paper: [228.0, 160.0] },
    Row { banks: "0 and 32", which: || vec![0, 32], threads: 16, paper: [228.0, 160.0] },
    Row { banks: "0 to 3", which: || (0..4).collect(), threads: 16, paper: [228.0, 246.0] },
    Row { banks: "0, 16, 32, 48", which: || vec![0, 16, 32, 48], threads: 16, paper: [320.0, 320.0] },
    Row { banks: "0 to 15", which: || (0..16).collect(), threads: 16, paper: [290.0, 246.0] },
    Row { banks: "0 to 31", which: || (0..32).collect(), threads: 32, paper: [304.0, 492.0] },
    Row { banks: "0 to 63", which: || (0..64).collect(), threads: 32, paper: [304.0, 533.0] },
];

/// How far a cell may be from the paper's, percent.
const ALLOWED: f64 = 15.0;

/// Chunks that each thread of the paper reads or writes: 200 MB in 32 KiB.
const CHUNKS: f64 = 6400.0;

/// MB/s of a row. Each thread goes around the banks, a chunk at a time.
fn rate(setting: &Setting, row: &Row, chunks: u32, write: bool) -> Result<f64, PaperError> {
    let banks = (row.which)();
    let page = setting.page_bytes();
    let took = setting.run(|| {
        let card = card_alone(setting, 64);
        let begin = clock::now();
        let thread = |thread: u32| {
            let (card, banks) = (&card, &banks);
            move || {
                for chunk in 0..chunks {
                    let bank = banks[(thread + chunk) as usize % banks.len()];
                    if write {
                        card.program(bank, page);
                    } else {
                        card.read(bank, page);
                    }
                }
            }
        };
        together((0..row.threads).map(thread).collect());
        Ok(clock::now() - begin)
    })?;
    Ok(megabytes_a_second(u64::from(row.threads * chunks) * page as u64, took))
}

fn measure(lab: &Lab, setting: &Setting, progress: &dyn Fn(f64)) -> Result<Outcome, PaperError> {
    let chunks = (CHUNKS * lab.scale).ceil().max(100.0) as u32;
    let columns = ["banks", "threads", "read, MB/s", "paper", "off, %", "write, MB/s", "paper", "off, %"];
    let mut table = DataTable::new("", "rates of the card", &columns);
    let mut verdicts = Vec::new();
    let mut lines = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for (index, row) in ROWS.iter().enumerate() {
        let mut cells = vec![row.banks.into(), u64::from(row.threads).into()];
        for (kind, name) in ["read", "write"].into_iter().enumerate() {
            let (here, paper) = (rate(setting, row, chunks, kind == 1)?, row.paper[kind]);
            let claim = format!("banks {}: {name}s at {paper:.0} MB/s", row.banks);
            verdicts.push(Verdict::near(&claim, &format!("{paper:.0} MB/s"), here, paper, ALLOWED));
            cells.extend([here.into(), paper.into(), ((here / paper - 1.0) * 100.0).into()]);
            lines[2 * kind].push((index as f64 + 1.0, here));
            lines[2 * kind + 1].push((index as f64 + 1.0, paper));
            progress((index as f64 + (kind as f64 + 1.0) / 2.0) / ROWS.len() as f64);
        }
        table.row(cells);
    }
    let series = ["reads", "reads, the paper", "writes", "writes, the paper"];
    let series = series.into_iter().zip(lines).map(|(label, points)| Series { label: label.to_owned(), points });
    let mut setup = setting.sentences();
    setup
        .push(format!("each thread reads or writes {chunks} pages of 32 KiB (the paper: {CHUNKS}), from bank to bank"));
    Ok(Outcome {
        setup,
        verdicts,
        charts: vec![Chart::Lines(Lines {
            title: "rates of the card".to_owned(),
            x: "row of the table".to_owned(),
            y: "MB/s".to_owned(),
            series: series.collect(),
            ..Lines::default()
        })],
        tables: vec![table],
        remarks: vec![
            "the paper's \"Bank0 to 32\" and \"Bank0 to 64\" are taken for the first 32 and 64 banks".to_owned(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::KeepNothing;
    use crate::perform::perform;

    fn failed(setting: &Setting) -> Vec<String> {
        let outcome = measure(&Lab::default(), setting, &|_| ()).unwrap();
        outcome.verdicts.into_iter().filter(|verdict| !verdict.holds).map(|verdict| verdict.claim).collect()
    }

    #[test]
    fn every_cell_is_near_the_paper_and_each_limit_is_needed_for_it() {
        let paper = Setting::paper(&Lab::default()).unwrap();
        assert_eq!(failed(&paper), [""; 0]);
        let mut own_queues = paper.clone();
        own_queues.profile.limits.read_queue_dies = 1;
        assert!(failed(&own_queues).iter().any(|claim| claim.starts_with("banks 0 and 1: reads")));
        let mut no_link = paper.clone();
        no_link.profile.limits.host_write_bytes_per_us = 0;
        assert_eq!(failed(&no_link), ["banks 0 to 63: writes at 533 MB/s"]);
        let mut one_rate = paper;
        one_rate.profile.limits.channel_read_bytes_per_us = 0;
        assert!(failed(&one_rate).iter().any(|claim| claim.starts_with("banks 0 to 15: reads")));
    }

    #[test]
    fn two_runs_give_the_same_bytes() {
        let run = || format!("{:?}", perform(&FIGURE, &Lab::default(), Vec::new(), &KeepNothing, &|_| ()).unwrap());
        assert_eq!(run(), run());
    }
}
