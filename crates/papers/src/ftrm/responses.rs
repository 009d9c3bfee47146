//! Response times of FTRM's variants where they read and write translation pages: what figures 4
//! and 5 have in common.

use super::setting::{CACHED, LOADS, PROFILE, device};
use crate::error::PaperError;
use crate::lab::Lab;
use crate::outcome::{Chart, DataTable, Lines, Outcome, Series};
use crate::verdict::Verdict;
use ftl::Purpose;
use ftl::flash::{Op, OpKind};
use sim::steps::Stepper;
use sim::{DevicePlan, RunSpec, SimError, WorkloadSpec};
use std::collections::BTreeMap;

/// The variants: the name in the paper and the FTL.
pub(super) const VARIANTS: [(&str, &str); 3] =
    [(BASE, "ftrm-base"), ("FTRM_Victim", "ftrm-victim"), ("FTRM_Write", "ftrm")];

pub(super) const BASE: &str = "FTRM_Base";

/// Requests that are measured for each logical page.
const REQUESTS: f64 = 0.5;

/// Which requests are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Those that read translation pages and program none.
    Reads,
    /// Those that program translation pages.
    Writes,
}

impl Access {
    const fn name(self) -> &'static str {
        match self {
            Self::Reads => "mapping reads",
            Self::Writes => "mapping writes",
        }
    }
}

/// How many requests took how long.
#[derive(Clone, Debug, Default)]
pub(super) struct Responses {
    /// Of each response time, ns, the requests that took it.
    taken: BTreeMap<u64, u64>,
}

impl Responses {
    fn count(&self) -> u64 {
        self.taken.values().sum()
    }

    /// Percent of the requests that took less than so long; NaN if there are none.
    pub(super) fn percent_below(&self, us: u64) -> f64 {
        let below: u64 = self.taken.range(..us * 1000).map(|(_, requests)| requests).sum();
        100.0 * below as f64 / self.count() as f64
    }

    /// The time within which so many percent of the requests ended, us; NaN if there are none.
    pub(super) fn within_us(&self, percent: f64) -> f64 {
        let wanted = self.count() as f64 * percent / 100.0;
        let mut ended = 0;
        for (ns, requests) in &self.taken {
            ended += requests;
            if ended as f64 >= wanted {
                return *ns as f64 / 1000.0;
            }
        }
        f64::NAN
    }

    /// The share of requests, percent, that took no longer than each time, us.
    fn cumulative(&self) -> Vec<(f64, f64)> {
        let (all, mut ended) = (self.count() as f64, 0);
        let point = |(ns, requests): (&u64, &u64)| {
            ended += requests;
            (*ns as f64 / 1000.0, 100.0 * ended as f64 / all)
        };
        self.taken.iter().map(point).collect()
    }
}

/// A workload, a variant, and how long its requests took.
pub(super) type Row = (&'static str, &'static str, Responses);

/// The response times of a variant under a workload; empty if it did not run.
pub(super) fn of<'a>(rows: &'a [Row], load: &str, variant: &str) -> &'a Responses {
    static NONE: Responses = Responses { taken: BTreeMap::new() };
    rows.iter().find(|row| row.0 == load && row.1 == variant).map_or(&NONE, |row| &row.2)
}

/// Time of an operation on translation pages, ns, array times alone.
const fn time_ns(device: &DevicePlan, op: &Op) -> u64 {
    let timing = &device.timing;
    match op.kind {
        OpKind::Read => timing.read_ns,
        OpKind::SpareRead => timing.spare_read_ns,
        OpKind::Program | OpKind::Flags => timing.program_ns,
        OpKind::Copy => timing.read_ns + timing.program_ns,
        OpKind::Erase => timing.erase_ns,
    }
}

fn responses(spec: &RunSpec, access: Access) -> Result<Responses, SimError> {
    let mut stepper = Stepper::new(spec, &mut |_| ())?;
    let mut responses = Responses::default();
    for _ in 0..(f64::from(spec.device.logical_pages) * REQUESTS) as u64 {
        let Some(step) = stepper.step()? else { break };
        let ops = || step.ops.iter().filter(|op| op.purpose == Purpose::Translation);
        let has = |kind: OpKind| ops().any(|op| op.kind == kind);
        let wanted = match access {
            Access::Reads => has(OpKind::Read) && !has(OpKind::Program),
            Access::Writes => has(OpKind::Program),
        };
        if wanted {
            *responses.taken.entry(ops().map(|op| time_ns(&spec.device, op)).sum()).or_default() += 1;
        }
    }
    Ok(responses)
}

/// Measures one kind of access under every workload, and draws what `verdicts` is to judge.
pub(super) fn measure(
    lab: &Lab,
    access: Access,
    verdicts: fn(&[Row]) -> Vec<Verdict>,
    progress: &dyn Fn(f64),
) -> Result<Outcome, PaperError> {
    let device = device(lab)?;
    let mut rows: Vec<Row> = Vec::new();
    for load in LOADS {
        for (name, ftl) in VARIANTS {
            let workload = WorkloadSpec::synthetic(&format!("profile:{load}"))?;
            let mut spec = RunSpec::new(ftl, device.clone(), workload);
            spec.seed = lab.seed;
            spec.config.cache_entries = ((f64::from(device.logical_pages) * CACHED) as u32).max(64);
            rows.push((load, name, responses(&spec, access)?));
            progress(rows.len() as f64 / (LOADS.len() * VARIANTS.len()) as f64);
        }
    }
    Ok(Outcome {
        setup: setup(lab, &device, access),
        verdicts: verdicts(&rows),
        charts: LOADS.map(|load| chart(&rows, load, access)).to_vec(),
        tables: vec![table(&rows, access)],
        remarks: Vec::new(),
    })
}

fn chart(rows: &[Row], load: &str, access: Access) -> Chart {
    let series = rows.iter().filter(|row| row.0 == load);
    Chart::Lines(Lines {
        name: load.to_owned(),
        title: format!("response times of {}, {load}", access.name()),
        x: "response time, us".to_owned(),
        y: format!("{} that took no longer, %", access.name()),
        log_x: true,
        log_y: false,
        series: series
            .map(|(_, name, responses)| Series { label: (*name).to_owned(), points: responses.cumulative() })
            .collect(),
    })
}

fn table(rows: &[Row], access: Access) -> DataTable {
    let title = format!("{}, and how many took no longer", access.name());
    let columns = ["workload", "FTL", "response time, us", "requests", "requests that took no longer, %"];
    let mut table = DataTable::new("", &title, &columns);
    for (load, name, responses) in rows {
        for ((us, percent), requests) in responses.cumulative().into_iter().zip(responses.taken.values()) {
            table.row(vec![(*load).into(), (*name).into(), us.into(), (*requests).into(), percent.into()]);
        }
    }
    table
}

fn setup(lab: &Lab, device: &DevicePlan, access: Access) -> Vec<String> {
    let which = match access {
        Access::Reads => "a mapping read is a request that reads translation pages and programs none",
        Access::Writes => "a mapping write is a request that programs translation pages",
    };
    vec![
        format!(
            "{} blocks of device profile {PROFILE}, {} logical pages, aged by the workload; the cache holds 1% of the entries; seed {}",
            device.geometry.blocks(),
            device.logical_pages,
            lab.seed
        ),
        "workloads: SYNTHETIC, fitted to what is published of the paper's traces (`profile:msnfs` and others); half as many requests as logical pages"
            .to_owned(),
        which.to_owned(),
        "response time: its reads and programs of translation pages and of their flags, one after the other, without the bus; \
         the paper's 100 us for the bus would take every read past its 100 us"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_limits_follow_from_what_requests_took() {
        let responses = Responses { taken: [(25_000, 6), (100_000, 3), (225_000, 1)].into() };
        assert!((responses.percent_below(100) - 60.0).abs() < 1e-9, "a time of the limit is not below it");
        assert!((responses.percent_below(101) - 90.0).abs() < 1e-9);
        assert!((responses.within_us(90.0) - 100.0).abs() < 1e-9);
        assert!((responses.within_us(91.0) - 225.0).abs() < 1e-9);
        assert_eq!(responses.cumulative(), [(25.0, 60.0), (100.0, 90.0), (225.0, 100.0)]);
    }

    #[test]
    fn no_request_has_no_share_and_no_limit() {
        let none = of(&[], "msnfs", BASE);
        assert!(none.percent_below(100).is_nan() && none.within_us(90.0).is_nan() && none.cumulative().is_empty());
    }
}
