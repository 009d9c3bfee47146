//! Figure 6 of Janus-FTL: page mapping with more and more over-provisioning against Janus-FTL with
//! little.

use super::loads::{Kind, Load};
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

/// Over-provisioned blocks, percent of all.
const PERCENTS: [u32; 5] = [3, 5, 10, 15, 20];

/// The paper's page mapping: greedy, one block written at a time.
const PAGE: &str = "page";
/// The same with data of the host and data that collection moved in blocks of their own.
const APART: &str = "page, moved data apart";
const JANUS: &str = "janus";

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let mut plan = Vec::new();
    for kind in Kind::ALL {
        let load = Load::find(lab, kind)?;
        let mut push = |system: &str, ftl: &str, placement: Option<&'static str>, percent: u32| {
            let mut spec = load.run(lab, ftl, f64::from(percent) / 100.0)?;
            spec.config.placement = placement;
            plan.push(Experiment { series: name(kind, system, percent), x: f64::from(percent), spec });
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

fn name(kind: Kind, ftl: &str, percent: u32) -> String {
    format!("{}: {ftl} ({percent}%)", kind.name())
}

fn conclude(lab: &Lab, runs: &[Run]) -> Outcome {
    let mut setup: Vec<String> = Kind::ALL
        .iter()
        .map(|kind| Load::find(lab, *kind).map_or_else(|error| error.to_string(), |load| load.describe()))
        .collect();
    setup.push(
        "device filled in order before; maps in non-volatile memory; performance is the sum of the times of all flash \
         operations: read 25 us, program 200 us, erase 2 ms"
            .to_owned(),
    );
    Outcome {
        setup,
        verdicts: verdicts(&|kind, ftl, percent| {
            let wanted = name(kind, ftl, percent);
            runs.iter().find(|run| run.experiment.series == wanted).map_or(f64::NAN, total_s)
        }),
        charts: vec![times_chart(runs)],
        tables: vec![times_table(runs)],
        remarks: vec![
            "the percentage is that of over-provisioned blocks among all blocks; the time includes that of the data itself, \
             which no FTL can save"
                .to_owned(),
        ],
    }
}

fn verdicts(time: &dyn Fn(Kind, &str, u32) -> f64) -> Vec<Verdict> {
    let over = |kind, percent| time(kind, PAGE, percent) / time(kind, JANUS, 3);
    let apart = |kind, percent| {
        let times = time(kind, APART, percent) / time(kind, JANUS, 3);
        format!("page mapping that keeps moved data apart takes {times:.2} times")
    };
    let beside = |mut verdict: Verdict, kind, percent| {
        verdict.ours = format!("{}; {}", verdict.ours, apart(kind, percent));
        verdict
    };
    let oltp_3 = Verdict::at_least(
        "OLTP: Janus-FTL at 3% is about four times as fast as page mapping at 3%",
        "about 4 times; at least 3 is asked for",
        over(Kind::Oltp, 3),
        3.0,
        " times",
    );
    let oltp_20 = Verdict::at_least(
        "OLTP: page mapping is slower than it even at 20%",
        "never faster",
        over(Kind::Oltp, 20),
        1.0,
        " times",
    );
    let sequential_5 = Verdict::at_least(
        "sequential: page mapping is slower at 5%",
        "slower below 10%",
        over(Kind::Sequential, 5),
        1.0,
        " times",
    );
    let sequential_10 =
        Verdict::at_most("and faster from 10% on", "faster from 10%", over(Kind::Sequential, 10), 1.0, " times");
    vec![
        beside(oltp_3, Kind::Oltp, 3),
        beside(oltp_20, Kind::Oltp, 20),
        beside(sequential_5, Kind::Sequential, 5),
        beside(sequential_10, Kind::Sequential, 10),
    ]
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
        assert!(verdicts(&as_published).iter().all(|verdict| verdict.holds));
        let otherwise = |kind, ftl: &str, percent| 25.0 - as_published(kind, ftl, percent);
        assert!(verdicts(&otherwise).iter().all(|verdict| !verdict.holds));
    }
}
