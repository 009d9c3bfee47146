//! Table 5 of LFTL: collecting in the path of writes against beside them.

use super::setting::{Aged, Setting};
use crate::error::PaperError;
use crate::figure::{Conclude, Figure, no_runs};
use crate::lab::Lab;
use crate::outcome::{Chart, DataTable, Lines, Outcome, Series};
use crate::verdict::Verdict;
use ::lftl::{Policy, SECTOR_BYTES, Threads, clock};
use std::time::Duration;

pub(super) const FIGURE: Figure = Figure {
    name: "lftl/table5",
    title: "collecting before a write (NPGC) against by a thread beside (PLLGC): one client",
    source: super::SOURCE,
    uses_traces: false,
    plan: no_runs,
    conclude: Conclude::Own(|lab, progress| measure(lab, &Setting::paper(lab)?, progress)),
};

/// The paper's seconds and collected blocks.
const PAPER_S: [f64; 2] = [546.0, 400.0];
const PAPER_BLOCKS: [u64; 2] = [8312, 8392];

const BANKS: u32 = 64;
const BLOCKS: u32 = 64;
/// What is overwritten, and how often: 1 GiB, 16 times.
const WRITTEN_PAGES: u64 = 32_768;
const TIMES: f64 = 16.0;
/// The least that is measured of it.
const LEAST: f64 = 1.0 / 16.0;
/// Pages of the card that hold data, over all. The paper draws their distribution and gives no
/// number; with half of them both policies collect about as many blocks, as there.
const LIVE: f64 = 0.5;
/// A write of 32 KiB is slow if it takes longer.
const SLOW: Duration = Duration::from_millis(2);
/// What the paper calls far fewer.
const FEWER: f64 = 10.0;

/// What a policy comes to.
#[derive(Clone, Debug, PartialEq)]
struct Measured {
    elapsed: Duration,
    /// Of each 32 KiB.
    latencies: Vec<Duration>,
    collected_blocks: u64,
    moved_pages: u64,
}

impl Measured {
    fn slow_percent(&self) -> f64 {
        let slow = self.latencies.iter().filter(|latency| **latency > SLOW).count();
        slow as f64 / self.latencies.len().max(1) as f64 * 100.0
    }
}

/// Overwrites the first pages in sequence, a sector at a time, with one client.
fn run(setting: &Setting, aged: &mut Aged, policy: Policy, (warm, pages): (u64, u64)) -> Result<Measured, PaperError> {
    setting.run(|| {
        let threads = Threads { workers: 64, collectors: u32::from(policy != Policy::WritePath) };
        let disk = aged.disk(setting, (policy, None), threads)?;
        let data = vec![0; SECTOR_BYTES];
        let sectors = (setting.page_bytes() / SECTOR_BYTES) as u64;
        let hot = WRITTEN_PAGES.min(u64::from(aged.logical_pages));
        let write = |page: u64| {
            (0..sectors).try_for_each(|sector| disk.write((page % hot * sectors + sector) * SECTOR_BYTES as u64, &data))
        };
        // A mount leaves free blocks that are erased when they are first used.
        (0..warm).try_for_each(write)?;
        let mut latencies = Vec::with_capacity(pages as usize);
        let (before, begin) = (disk.engine().report(), clock::now());
        for page in warm..warm + pages {
            let from = clock::now();
            write(page)?;
            latencies.push(clock::now() - from);
        }
        let after = disk.engine().report();
        Ok(Measured {
            elapsed: clock::now() - begin,
            latencies,
            collected_blocks: after.collected_blocks - before.collected_blocks,
            moved_pages: after.moved_pages - before.moved_pages,
        })
    })
}

fn measure(lab: &Lab, setting: &Setting, progress: &dyn Fn(f64)) -> Result<Outcome, PaperError> {
    let share = lab.scale.max(LEAST);
    let pages = (WRITTEN_PAGES as f64 * TIMES * share) as u64;
    let mut aged = Aged::new(setting, (BANKS, BLOCKS), LIVE, lab.seed)?;
    progress(0.3);
    let npgc = run(setting, &mut aged, Policy::WritePath, (WRITTEN_PAGES, pages))?;
    progress(0.6);
    let pllgc = run(setting, &mut aged, Policy::Parallel, (WRITTEN_PAGES, pages))?;
    progress(1.0);
    let columns = [
        "policy",
        "elapsed, s",
        "over the share, s",
        "the paper, s",
        "over 2 ms, %",
        "blocks collected",
        "the paper, of all",
        "pages moved",
    ];
    let mut table = DataTable::new("", "one client overwrites 1 GiB again and again", &columns);
    let both = [("NPGC", &npgc), ("PLLGC", &pllgc)];
    for (index, (name, of)) in both.iter().enumerate() {
        table.row(vec![
            (*name).into(),
            of.elapsed.as_secs_f64().into(),
            (of.elapsed.as_secs_f64() / share).into(),
            PAPER_S[index].into(),
            of.slow_percent().into(),
            of.collected_blocks.into(),
            PAPER_BLOCKS[index].into(),
            of.moved_pages.into(),
        ]);
    }
    let series = both.map(|(name, of)| Series { label: name.to_owned(), points: worst(&of.latencies) });
    let mut setup = setting.sentences();
    setup.push(setting.own_sentence());
    setup.push(format!(
        "8 GiB in 64 banks of 64 blocks, {:.0}% of their pages live, aged by random overwrites; 64 workers, 1 collector",
        LIVE * 100.0
    ));
    setup.push(format!(
        "one client writes 1 GiB in sequence, 4 KiB at a time, again and again: {:.3} GiB in all (the paper: 16)",
        TIMES * share
    ));
    Ok(Outcome {
        setup,
        verdicts: verdicts(&npgc, &pllgc),
        charts: vec![Chart::Lines(Lines {
            title: "the longest of 64 writes of 32 KiB".to_owned(),
            x: "write".to_owned(),
            y: "microseconds".to_owned(),
            log_y: true,
            series: series.into(),
            ..Lines::default()
        })],
        tables: vec![table],
        remarks: vec![
            "a write is answered by a buffer, as in the paper: its FTL had no barrier, and 16 GiB in 400 s are 97 us for \
             4 KiB, less than a program takes"
                .to_owned(),
        ],
    })
}

/// The longest of each 64 writes, microseconds.
fn worst(latencies: &[Duration]) -> Vec<(f64, f64)> {
    const EACH: usize = 64;
    let most = |part: &[Duration]| part.iter().max().map_or(0.0, |longest| longest.as_secs_f64() * 1e6);
    latencies.chunks(EACH).enumerate().map(|(index, part)| ((index * EACH) as f64, most(part))).collect()
}

fn verdicts(npgc: &Measured, pllgc: &Measured) -> Vec<Verdict> {
    let ratio = npgc.elapsed.as_secs_f64() / pllgc.elapsed.as_secs_f64();
    let fewer = npgc.slow_percent() / pllgc.slow_percent().max(1e-9);
    let mut slow = Verdict::at_least(
        "with PLLGC far fewer writes of 32 KiB take more than 2 ms",
        "far fewer; here: a tenth",
        fewer.min(1e4),
        FEWER,
        " times fewer",
    );
    slow.ours = format!("{:.3}% against {:.3}%", pllgc.slow_percent(), npgc.slow_percent());
    vec![
        Verdict::at_least(
            "NPGC takes longer than PLLGC",
            "546 s to 400 s, 1.365 times",
            ratio,
            PAPER_S[0] / PAPER_S[1],
            " times",
        ),
        slow,
        Verdict::near(
            "both collect about as many blocks: PLLGC over NPGC",
            "8392 to 8312, 1.01",
            pllgc.collected_blocks as f64 / npgc.collected_blocks as f64,
            PAPER_BLOCKS[1] as f64 / PAPER_BLOCKS[0] as f64,
            15.0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_with_room_to_spare_shows_no_difference() {
        let setting = Setting::paper(&Lab::default()).unwrap();
        let held = |live: f64| {
            let mut aged = Aged::new(&setting, (8, 64), live, 1).unwrap();
            let run = |aged: &mut Aged, policy| run(&setting, aged, policy, (4_000, 4_000)).unwrap();
            let (npgc, pllgc) = (run(&mut aged, Policy::WritePath), run(&mut aged, Policy::Parallel));
            assert_eq!(run(&mut aged, Policy::Parallel), pllgc, "a run repeats");
            verdicts(&npgc, &pllgc).into_iter().map(|verdict| verdict.holds).collect::<Vec<_>>()
        };
        assert!(held(LIVE)[0], "{:?}", held(LIVE));
        assert!(!held(0.1)[0], "few live pages: nothing is moved");
    }
}
