//! Figure 9 of Janus-FTL: what page mapping, BAST, FAST and Janus-FTL spend their time on under a
//! file-system benchmark, with maps in flash.

use super::loads::PostMark;
use super::times::{Time, times_chart, times_table, total_s};
use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::Lab;
use crate::outcome::Outcome;
use crate::verdict::{Named, Verdict};
use sim::SimError;

pub(super) const FIGURE: Figure = Figure {
    name: "janus/fig9",
    title: "time of page mapping, BAST, FAST and Janus-FTL under a file-system benchmark, maps in flash",
    source: "Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010, section 6",
    uses_traces: false,
    plan,
    conclude: Conclude::Runs(conclude),
};

/// The paper's page mapping: all of its map in RAM, and what is modified written to flash, so that
/// a mount need not read the whole device; greedy, one block written at a time, as in Figure 6.
const PPM: &str = "PPM";
/// The same with data of the host and data that collection moved in blocks of their own.
const APART: &str = "PPM, moved data apart";
/// Page mapping that writes no map, and reads every spare area at a mount instead.
const SCANNED: &str = "PPM, no map written";
const BAST: &str = "BAST";
const FAST: &str = "FAST";
const JANUS: &str = "Janus-FTL";

/// Why a gain may be smaller than the paper's.
const LENGTH: &str = "the paper does not say how long its rounds are; in longer ones page mapping and FAST take more time for each \
                      page written, Janus-FTL hardly does";

/// Those that the paper compares.
const COMPARED: [&str; 4] = [PPM, BAST, FAST, JANUS];

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let load = PostMark::new(lab)?;
    let rows = [
        (PPM, "lazy", Some("single")),
        (BAST, "bast", None),
        (FAST, "fast", None),
        (JANUS, "janus", None),
        (APART, "lazy", Some("split")),
        (SCANNED, "page", Some("single")),
    ];
    let experiment = |(series, ftl, placement): (&str, &str, Option<&'static str>)| {
        let mut spec = load.run(lab, ftl)?;
        spec.config.placement = placement;
        if ftl == "lazy" {
            spec.config.cache_entries = spec.device.logical_pages;
        }
        Ok(Experiment { series: series.to_owned(), x: 0.0, spec })
    };
    rows.into_iter().map(experiment).collect()
}

fn conclude(_: &Lab, runs: &[Run]) -> Outcome {
    let find = |system: &str| runs.iter().find(|run| run.experiment.series == system);
    let time = |time: Option<Time>, system: &str| {
        find(system).map_or(f64::NAN, |run| time.map_or_else(|| total_s(run), |time| time.seconds(run)))
    };
    let mut setup: Vec<String> = runs.first().map(PostMark::describe).into_iter().collect();
    setup.push(
        "maps of all in flash, found again after power loss. PPM is `lazy` with a cache for the whole map: as in the paper it \
         has its map in RAM and writes what was modified. Beside it, not in the paper: the same with data of the host and \
         data that collection moved in blocks of their own; and `page`, which writes no map, for it reads every spare area \
         at a mount"
            .to_owned(),
    );
    Outcome {
        setup,
        verdicts: verdicts(&time),
        charts: vec![times_chart(runs)],
        tables: vec![times_table(runs)],
        remarks: vec![
            "the paper does not say with which sizes its Figure 9 was measured; here they are those of Figure 8, which it gives \
             as the reason of Figure 9"
                .to_owned(),
            format!(
                "at most a tenth of PPM's map may be modified and not yet written; {:.0} s of its time are reads of spare areas, \
                 by which its collections find whose a page is; page mapping that writes no map does without, and without data \
                 time Janus-FTL is {:.2} times better than that",
                find(PPM).map_or(f64::NAN, spare_reads_s),
                without_data(&time, SCANNED) / without_data(&time, JANUS),
            ),
        ],
    }
}

/// Seconds of a run for reads of spare areas alone.
fn spare_reads_s(run: &Run) -> f64 {
    let reads: u64 = run.result.flash.iter().map(|(_, flash)| flash.spare_reads).sum();
    reads as f64 * run.experiment.spec.device.timing.spare_read_ns as f64 / 1e9
}

/// Seconds of a system, those for the data itself apart.
fn without_data(time: &dyn Fn(Option<Time>, &str) -> f64, system: &str) -> f64 {
    time(Some(Time::Map), system) + time(Some(Time::Recycling), system)
}

/// `time` gives the seconds of a system in all, or spent on one thing.
fn verdicts(time: &dyn Fn(Option<Time>, &str) -> f64) -> Vec<Verdict> {
    let data = |system: &str| time(Some(Time::Data), system);
    let maps = |system: &str| time(Some(Time::Map), system);
    let recycling = |system: &str| time(Some(Time::Recycling), system);
    let extra = |system: &str| without_data(time, system);
    let named = |value: &dyn Fn(&str) -> f64| COMPARED.map(|system| (system, value(system)));
    let largest = |values: [Named<'_>; 4], but: &str| {
        values.iter().filter(|(name, _)| *name != but).map(|(_, value)| *value).fold(0.0, f64::max)
    };
    let all = named(&|system: &str| time(None, system));
    let datas = COMPARED.map(data);
    let (least, most) = datas.iter().fold((f64::MAX, 0.0_f64), |(least, most), s| (least.min(*s), most.max(*s)));
    vec![
        Verdict::at_most("data time is the same for all", "exactly", (most / least - 1.0) * 100.0, 1.0, "% apart"),
        Verdict::least("Janus-FTL takes the least time", "best", &all, JANUS),
        Verdict::at_least(
            "without data time Janus-FTL is more than two times better than page mapping",
            "more than 2 times",
            extra(PPM) / extra(JANUS),
            2.0,
            " times",
        )
        .unless_holds(LENGTH),
        Verdict::at_least(
            "without data time it is 1.6 times better than FAST",
            "1.6 times",
            extra(FAST) / extra(JANUS),
            1.6,
            " times",
        )
        .unless_holds(LENGTH),
        Verdict::below_by(
            "without time for maps and data it takes less than half of FAST's time",
            (JANUS, recycling(JANUS)),
            (FAST, recycling(FAST)),
            50.0,
        )
        .unless_holds(LENGTH),
        Verdict::at_least("BAST is slowest", "worst", time(None, BAST) / largest(all, BAST), 1.0, " times the next"),
        Verdict::at_least(
            "page mapping has the largest map time",
            "largest",
            maps(PPM) / largest(named(&maps), PPM),
            1.0,
            " times the next",
        ),
        Verdict::least("FAST has the least map time", "least", &named(&maps), FAST).unless_holds(
            "a checkpoint comes after four openings of blocks for each page of the largest that there can be, so that map time \
             follows the blocks opened and not the size of the map",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_data() {
        let as_published = |time: Option<Time>, system: &str| {
            let (maps, recycling) = match system {
                PPM => (60.0, 260.0),
                BAST => (50.0, 900.0),
                FAST => (20.0, 220.0),
                _ => (40.0, 100.0),
            };
            match time {
                None => 300.0 + maps + recycling,
                Some(Time::Data) => 300.0,
                Some(Time::Map) => maps,
                Some(Time::Recycling) => recycling,
            }
        };
        assert!(verdicts(&as_published).iter().all(|verdict| verdict.holds));
        let otherwise = |time: Option<Time>, system: &str| match (time, system) {
            (Some(Time::Data), JANUS) => 310.0,
            _ => 2000.0 - as_published(time, system),
        };
        assert!(verdicts(&otherwise).iter().all(|verdict| !verdict.holds));
    }
}
