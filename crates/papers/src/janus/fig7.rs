//! Figure 7 of Janus-FTL: BAST, FAST, Janus-FTL at a fixed utilisation and adaptive.

use super::loads::{Kind, Load, Locality};
use super::times::{times_chart, times_table, total_s};
use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::Lab;
use crate::outcome::Outcome;
use crate::verdict::{Named, Verdict};
use sim::SimError;

pub(super) const FIGURE: Figure = Figure {
    name: "janus/fig7",
    title: "BAST, FAST, Janus-FTL fixed and adaptive on a mostly sequential and an OLTP workload",
    source: "Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010, section 6",
    uses_traces: true,
    plan,
    conclude: Conclude::Runs(conclude),
};

const FTLS: [&str; 4] = ["bast", "fast", FIXED, ADAPTIVE];
const FIXED: &str = "janus-fixed";
const ADAPTIVE: &str = "janus";

/// Share of the blocks that is over-provisioned; the paper does not say which its Figure 7 has.
const OVER_PROVISIONED: f64 = 0.03;

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let mut plan = Vec::new();
    for load in Load::find_all(lab)? {
        for ftl in FTLS {
            let spec = load.run(lab, ftl, OVER_PROVISIONED)?;
            plan.push(Experiment { series: name(&load, ftl), x: 0.0, spec });
        }
    }
    Ok(plan)
}

fn name(load: &Load, ftl: &str) -> String {
    format!("{}: {ftl}", load.name())
}

fn conclude(lab: &Lab, runs: &[Run]) -> Outcome {
    let (loads, mut setup) = match Load::find_all(lab) {
        Ok(loads) => (loads, Vec::new()),
        Err(error) => (Vec::new(), vec![error.to_string()]),
    };
    setup.extend(loads.iter().map(Load::describe));
    setup.push(
        "3% of the blocks over-provisioned, device filled in order before, maps in non-volatile memory; performance is the \
         sum of the times of all flash operations"
            .to_owned(),
    );
    let time = |load: &Load, ftl: &str| {
        let wanted = name(load, ftl);
        runs.iter().find(|run| run.experiment.series == wanted).map_or(f64::NAN, total_s)
    };
    let of_load = |load: &Load| match load.kind() {
        Kind::Sequential => sequential(load.in_words(), load.locality(), &|ftl| time(load, ftl)),
        Kind::Oltp => oltp(load.in_words(), load.locality(), &|ftl| time(load, ftl)),
    };
    Outcome {
        setup,
        verdicts: loads.iter().flat_map(of_load).collect(),
        charts: vec![times_chart(runs)],
        tables: vec![times_table(runs)],
        remarks: Vec::new(),
    }
}

fn sequential(words: &str, locality: Locality, time: &dyn Fn(&str) -> f64) -> Vec<Verdict> {
    let claim = |text: &str| format!("{words}: {text}");
    let all: Vec<Named<'_>> = FTLS.iter().map(|ftl| (*ftl, time(ftl))).collect();
    let others = ["fast", FIXED, ADAPTIVE].map(time).into_iter().fold(0.0, f64::max);
    let explained = |verdict: Verdict| {
        match locality {
        Locality::Broad => verdict.unless_holds(
            "the claim needs a hot part that the page-mapped area holds, as in the narrow workload: here most requests fuse \
             a logical block, and another is defused for it",
        ),
        _ => verdict,
    }
    };
    vec![
        explained(Verdict::at_least(&claim("BAST is slowest"), "worst", time("bast") / others, 1.0, " times the next")),
        explained(Verdict::least(&claim("Janus-FTL at a fixed utilisation is fastest"), "best", &all, FIXED)),
        Verdict::at_least(
            &claim("the adaptive one is slower than the fixed one"),
            "slower: the trace is too short",
            time(ADAPTIVE) / time(FIXED),
            1.0,
            " times",
        )
        .unless_holds(
            "the adaptive one starts where the fixed one stands, and here it moves to a better place in time",
        ),
    ]
}

fn oltp(words: &str, locality: Locality, time: &dyn Fn(&str) -> f64) -> Vec<Verdict> {
    let claim = |text: &str| format!("{words}: {text}");
    let faster = Verdict::below_by(
        &claim("the adaptive one takes 20% less time than the fixed one"),
        (ADAPTIVE, time(ADAPTIVE)),
        (FIXED, time(FIXED)),
        20.0,
    );
    let slower = Verdict::at_least(
        &claim("FAST is slower than BAST"),
        "slower",
        time("fast") / time("bast"),
        1.0,
        " times",
    )
    .unless_holds(
        "the claim needs several sequential streams, as the paper says of its trace: FAST has one log block for \
                 them, and for random writes to many logical blocks BAST has too few",
    );
    match locality {
        // Nothing is fused, so that no size is better than another.
        Locality::Streams => vec![slower],
        Locality::Narrow => vec![
            faster.unless_holds(
                "the claim needs a hot part of another size than the fixed area, as in the broad workload: here the fixed \
                 area holds it, and there is nothing to adapt to",
            ),
            slower,
        ],
        _ => vec![faster, slower],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_data() {
        let as_published = |kind: Kind, ftl: &str| match (kind, ftl) {
            (Kind::Sequential, "bast") => 20.0,
            (Kind::Sequential, "fast") => 15.0,
            (Kind::Sequential, FIXED) => 8.0,
            (Kind::Sequential, _) => 9.0,
            (Kind::Oltp, "fast") => 30.0,
            (Kind::Oltp, "bast") => 25.0,
            (Kind::Oltp, FIXED) => 13.0,
            (Kind::Oltp, _) => 10.0,
        };
        let both = |locality, time: &dyn Fn(Kind, &str) -> f64| {
            let mut verdicts = sequential("w", locality, &|ftl| time(Kind::Sequential, ftl));
            verdicts.extend(oltp("w", locality, &|ftl| time(Kind::Oltp, ftl)));
            verdicts
        };
        for locality in [Locality::Narrow, Locality::Broad, Locality::Packed] {
            assert!(both(locality, &as_published).iter().all(|verdict| verdict.holds));
            let otherwise = |kind, ftl: &str| 40.0 - as_published(kind, ftl);
            assert!(both(locality, &otherwise).iter().all(|verdict| !verdict.holds));
        }
        assert_eq!(both(Locality::Streams, &as_published).len(), 4);
    }
}
