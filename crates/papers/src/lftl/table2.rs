//! Table 2 of LFTL: rates of the FTL by the number of its queues.

use super::setting::{Setting, megabytes_a_second, shared_work};
use crate::error::PaperError;
use crate::figure::{Conclude, Figure, no_runs};
use crate::lab::Lab;
use crate::outcome::{Chart, DataTable, Lines, Outcome, Series};
use crate::units::short;
use crate::verdict::Verdict;
use ::lftl::{Options, Policy, Threads};

pub(super) const FIGURE: Figure = Figure {
    name: "lftl/table2",
    title: "read and write rates of the FTL, by its number of queues",
    source: super::SOURCE,
    uses_traces: false,
    plan: no_runs,
    conclude: Conclude::Own(|lab, progress| measure(lab, &Setting::paper(lab)?, progress)),
};

/// Queues, and the paper's MB/s of reads and of writes.
const ROWS: [(u32, [f64; 2]); 5] =
    [(1, [53.0, 45.0]), (2, [99.0, 91.0]), (4, [163.0, 170.0]), (8, [210.0, 282.0]), (16, [223.0, 364.0])];

/// How far a cell may be from the paper's, percent.
const ALLOWED: f64 = 15.0;

const BANKS: u32 = 64;
/// Requests under way at once. The paper does not say.
const CLIENTS: u32 = 64;
/// Pages written before anything is measured: more than the buffers hold.
const WARM: u64 = 512;

/// MB/s of reads and writes in sequence, a page at a time, with so many queues.
fn rates(setting: &Setting, queues: u32, pages: u64) -> Result<[f64; 2], PaperError> {
    let page = setting.page_bytes();
    setting.run(|| {
        let blocks =
            2 * (WARM + pages).div_ceil(u64::from(BANKS * setting.profile.geometry.pages_per_block)) as u32 + 12;
        let logical = (WARM + pages) as u32;
        let options = Options { policy: Policy::WritePath, ..Options::new(logical) };
        let threads = Threads { workers: queues, collectors: 0 };
        let disk = setting.disk(setting.on_card(setting.hollow(BANKS, blocks)?), options, threads)?;
        let data = vec![0; page];
        let write = |at: u64| disk.write(at * page as u64, &data);
        shared_work(CLIENTS, WARM, write)?;
        let writes = shared_work(CLIENTS, pages, |turn| write(WARM + turn))?;
        disk.flush()?;
        // The last pages are in the buffers still.
        let read = pages - u64::from(Options::new(logical).buffers).min(pages / 2);
        let reads = shared_work(CLIENTS, read, |turn| disk.read((WARM + turn) * page as u64, &mut vec![0; page]))?;
        Ok([megabytes_a_second(read * page as u64, reads), megabytes_a_second(pages * page as u64, writes)])
    })
}

fn measure(lab: &Lab, setting: &Setting, progress: &dyn Fn(f64)) -> Result<Outcome, PaperError> {
    // 1 GB a cell at full scale.
    let pages = ((32_768.0 * lab.scale) as u64).max(2_048);
    let columns = ["queues", "read, MB/s", "paper", "off, %", "write, MB/s", "paper", "off, %"];
    let mut table = DataTable::new("", "rates of the FTL", &columns);
    let mut lines = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    let mut verdicts = Vec::new();
    for (index, (queues, paper)) in ROWS.into_iter().enumerate() {
        let here = rates(setting, queues, pages)?;
        let mut cells = vec![u64::from(queues).into()];
        for (kind, name) in ["reads", "writes"].into_iter().enumerate() {
            let claim = format!("{queues} queues: {name} at {} MB/s", short(paper[kind]));
            verdicts.push(Verdict::near(
                &claim,
                &format!("{} MB/s", short(paper[kind])),
                here[kind],
                paper[kind],
                ALLOWED,
            ));
            cells.extend([here[kind].into(), paper[kind].into(), ((here[kind] / paper[kind] - 1.0) * 100.0).into()]);
            lines[2 * kind].push((f64::from(queues), here[kind]));
            lines[2 * kind + 1].push((f64::from(queues), paper[kind]));
        }
        table.row(cells);
        progress((index + 1) as f64 / ROWS.len() as f64);
    }
    for (kind, name) in ["reads", "writes"].into_iter().enumerate() {
        let times = |points: &[(f64, f64)]| {
            points.last().zip(points.first()).map_or(f64::NAN, |(last, first)| last.1 / first.1)
        };
        let paper = times(&lines[2 * kind + 1]);
        verdicts.push(Verdict::near(
            &format!("16 queues are {} times as fast as one: {name}", short(paper)),
            &format!("{} times", short(paper)),
            times(&lines[2 * kind]),
            paper,
            ALLOWED,
        ));
    }
    let series = ["reads", "reads, the paper", "writes", "writes, the paper"];
    let series = series.into_iter().zip(lines).map(|(label, points)| Series { label: label.to_owned(), points });
    let mut setup = setting.sentences();
    setup.push(setting.own_sentence());
    setup.push(format!("{CLIENTS} clients write {pages} pages of 32 KiB in sequence, then read them; 256 buffers"));
    Ok(Outcome {
        setup,
        verdicts,
        charts: vec![Chart::Lines(Lines {
            title: "rates of the FTL".to_owned(),
            x: "queues".to_owned(),
            y: "MB/s".to_owned(),
            log_x: true,
            series: series.collect(),
            ..Lines::default()
        })],
        tables: vec![table],
        remarks: vec![
            "rows of 1 and of 16 queues gave the FTL's own times; those between follow from the engine".to_owned(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ftl_that_takes_no_time_of_its_own_is_not_the_papers() {
        let failed = |setting: &Setting| {
            let outcome = measure(&Lab::default(), setting, &|_| ()).unwrap();
            outcome
                .verdicts
                .into_iter()
                .filter(|verdict| !verdict.holds)
                .map(|verdict| verdict.claim)
                .collect::<Vec<_>>()
        };
        let paper = Setting::paper(&Lab::default()).unwrap();
        assert_eq!(failed(&paper), [""; 0]);
        let quick = Setting { own: Default::default(), ..paper };
        assert!(failed(&quick).len() >= 6, "{:?}", failed(&quick));
    }
}
