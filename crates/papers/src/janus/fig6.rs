//! Figure 6 of Janus-FTL: page mapping with more and more over-provisioning against Janus-FTL with
//! little.

use super::loads::{Kind, Load, Locality};
use super::times::{times_chart, times_table, total_s};
use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::Lab;
use crate::outcome::Outcome;
use crate::verdict::Verdict;
use sim::SimError;

pub(super) const FIGURE: Figure = Figure {
    name: "janus/fig6",
    title: "page mapping at 3 to 20% over-provisioning against Janus-FTL at 3%",
    source: "Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010, section 6",
    uses_traces: true,
    plan,
    conclude: Conclude::Runs(conclude),
};

/// What rounds to four.
const ABOUT_FOUR: (f64, f64) = (3.5, 4.5);

/// Over-provisioned blocks, percent of all.
const PERCENTS: [u32; 5] = [3, 5, 10, 15, 20];

/// The paper's page mapping: greedy, one block written at a time.
const PAGE: &str = "page";
/// The same with data of the host and data that collection moved in blocks of their own.
const APART: &str = "page, moved data apart";
const JANUS: &str = "janus";

/// A sequential stream needs no collection, whoever maps it.
fn loads(lab: &Lab) -> Result<Vec<Load>, SimError> {
    let mut loads = Load::find_all(lab)?;
    loads.retain(|load| load.locality() != Locality::Streams);
    Ok(loads)
}

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let mut plan = Vec::new();
    for load in loads(lab)? {
        let mut push = |system: &str, ftl: &str, placement: Option<&'static str>, percent: u32| {
            let mut spec = load.run(lab, ftl, f64::from(percent) / 100.0)?;
            spec.config.placement = placement;
            plan.push(Experiment { series: name(&load.name(), system, percent), x: f64::from(percent), spec });
            Ok::<(), SimError>(())
        };
        for percent in PERCENTS {
            push(PAGE, "page", Some("single"), percent)?;
        }
        for percent in PERCENTS {
            push(APART, "page", Some("split"), percent)?;
        }
        push(JANUS, "janus", None, PERCENTS[0])?;
    }
    Ok(plan)
}

fn name(load: &str, ftl: &str, percent: u32) -> String {
    format!("{load}: {ftl} ({percent}%)")
}

fn conclude(lab: &Lab, runs: &[Run]) -> Outcome {
    let (loads, mut setup) = match loads(lab) {
        Ok(loads) => (loads, Vec::new()),
        Err(error) => (Vec::new(), vec![error.to_string()]),
    };
    setup.extend(loads.iter().map(Load::describe));
    setup.push(
        "device filled in order before; maps in non-volatile memory; performance is the sum of the times of all flash \
         operations: read 25 us, program 200 us, erase 2 ms"
            .to_owned(),
    );
    let time = |load: &Load, ftl: &str, percent: u32| {
        let wanted = name(&load.name(), ftl, percent);
        runs.iter().find(|run| run.experiment.series == wanted).map_or(f64::NAN, total_s)
    };
    let verdicts = loads.iter().flat_map(|load| verdicts(load.into(), &|ftl, percent| time(load, ftl, percent)));
    Outcome {
        setup,
        verdicts: verdicts.collect(),
        charts: vec![times_chart(runs)],
        tables: vec![times_table(runs)],
        remarks: vec![
            "the percentage is that of over-provisioned blocks among all blocks; every one of them writes as many pages, to \
             as large a part of the device; the time includes that of the data itself, which no FTL can save"
                .to_owned(),
        ],
    }
}

/// What claims of a load begin with, and why they fail where that is known.
struct About {
    kind: Kind,
    words: &'static str,
    why: Option<&'static str>,
}

impl From<&Load> for About {
    fn from(load: &Load) -> Self {
        let why = match (load.kind(), load.locality()) {
            (_, Locality::Broad) => Some(
                "the claim needs a hot part that the page-mapped area holds, as in the narrow workload: each request beside it \
                 fuses a logical block, and another is defused for it",
            ),
            (Kind::Oltp, Locality::OwnAddresses) => Some(
                "an excerpt played again and again overwrites its few pages in the same order: page mapping moves little, \
                 and the time of the data itself is most of its time",
            ),
            (Kind::Oltp, Locality::Packed) => Some(
                "the claim needs a narrow hot part; on a device made for the pages that an excerpt touches, those that it \
                 writes are a large part",
            ),
            _ => None,
        };
        Self { kind: load.kind(), words: load.in_words(), why }
    }
}

fn verdicts(about: About, time: &dyn Fn(&str, u32) -> f64) -> Vec<Verdict> {
    let over = |percent| time(PAGE, percent) / time(JANUS, 3);
    let beside = |mut verdict: Verdict, percent| {
        let times = time(APART, percent) / time(JANUS, 3);
        verdict.ours = format!("{}; page mapping that keeps moved data apart takes {times:.2} times", verdict.ours);
        match about.why {
            Some(why) => verdict.unless_holds(why),
            None => verdict,
        }
    };
    let claim = |text: &str| format!("{}: {text}", about.words);
    let slower = |text: &str, paper: &str, percent| {
        beside(Verdict::at_least(&claim(text), paper, over(percent), 1.0, " times"), percent)
    };
    match about.kind {
        Kind::Oltp => vec![
            beside(
                Verdict::between(
                    &claim("Janus-FTL at 3% is about four times as fast as page mapping at 3%"),
                    "about 4 times; here: 3.5 to 4.5",
                    over(3),
                    ABOUT_FOUR,
                    " times",
                ),
                3,
            ),
            slower("page mapping is slower than it even at 20%", "never faster", 20),
        ],
        Kind::Sequential => {
            let faster = claim("page mapping is faster from 10% on");
            vec![
                slower("page mapping is slower at 5%", "slower below 10%", 5),
                beside(Verdict::at_most(&faster, "faster from 10%", over(10), 1.0, " times"), 10),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_data() {
        let as_published = |kind: Kind, ftl: &str, percent: u32| match (kind, ftl, percent) {
            (_, "janus", _) => 10.0,
            (Kind::Oltp, _, 3) => 41.0,
            (Kind::Sequential, _, 10..) => 9.0,
            _ => 12.0,
        };
        for kind in Kind::ALL {
            let about = || About { kind, words: "w", why: Some("because") };
            let published = verdicts(about(), &|ftl, percent| as_published(kind, ftl, percent));
            assert!(published.iter().all(|verdict| verdict.holds && verdict.why.is_none()));
            let otherwise = verdicts(about(), &|ftl, percent| 25.0 - as_published(kind, ftl, percent));
            assert!(otherwise.iter().all(|verdict| !verdict.holds && verdict.why.is_some()));
            // A little past each limit, on either side of four.
            for three in [34.0, 46.0] {
                let past = verdicts(about(), &|ftl, percent| match (ftl, kind, percent) {
                    ("janus", ..) => 10.0,
                    (_, Kind::Oltp, 3) => three,
                    (_, Kind::Sequential, 10..) => 10.1,
                    _ => 9.9,
                });
                assert!(past.iter().all(|verdict| !verdict.holds), "{past:?}");
            }
        }
    }
}
