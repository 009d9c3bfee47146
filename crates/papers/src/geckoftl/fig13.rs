//! Figure 13 of GeckoFTL: RAM, recovery and write-amplification of the paper's FTLs, by formula and
//! measured.

use super::common::{
    GECKO, Group, PROFILE, amplification_bars, collections_left_out, model_of, recovery_seconds, setup, validity,
};
use super::model::{Device, MODELS, Model, Times};
use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::{Lab, Shape};
use crate::outcome::{Bar, Cell, Chart, DataTable, Outcome, Part};
use crate::units::{mib, short};
use crate::verdict::{Named, Verdict};
use sim::{SimError, WorkloadSpec};

pub(super) const FIGURE: Figure = Figure {
    name: "gecko/fig13",
    title: "RAM, recovery time and write-amplification of the paper's FTLs, by structure, step and purpose",
    source: "Dayan, Bonnet and Idreos, SIGMOD 2016, section 5.3",
    uses_traces: false,
    plan,
    conclude: Conclude::Runs(conclude),
};

/// The FTLs of the comparison that formulas are given for: page mapping, which has no metadata in
/// flash, is not in it.
fn compared() -> impl Iterator<Item = &'static Model> {
    MODELS.iter().filter(|model| model.name != "page")
}

fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let device = lab.device(PROFILE, Shape::share(lab.scale))?;
    let each = compared().map(|model| {
        let mut spec = lab.uniform(model.name, &device)?;
        spec.power_cut = true;
        Ok(Experiment { series: model.name.to_owned(), x: 0.0, spec })
    });
    // For one claim only: behind the others, and told from them by x.
    let skewed = SKEWED.iter().map(|workload| {
        let mut spec = lab.uniform(GECKO, &device)?;
        spec.workload = WorkloadSpec::synthetic(workload)?;
        Ok(Experiment { series: (*workload).to_owned(), x: 1.0, spec })
    });
    each.chain(skewed).collect()
}

/// Workloads that leave many entries dirty for long.
const SKEWED: [&str; 2] = ["zipf:theta=1.1", "hotcold:writes=99,space=1"];

fn conclude(lab: &Lab, runs: &[Run]) -> Outcome {
    let (runs, skewed) = runs.split_at(runs.partition_point(|run| run.experiment.x == 0.0));
    let mut setup = setup(lab, runs);
    setup.push(
        "formulas: the paper's 2 TiB device, and the device that was run; 10% of the cache may be dirty where it is \
         capped"
            .to_owned(),
    );
    Outcome {
        setup,
        verdicts: verdicts(runs, skewed),
        charts: charts(runs),
        tables: vec![summary(runs), ram(runs), recovery(runs), purposes(runs)],
        remarks: remarks(runs),
    }
}

/// What the formulas say of a run's FTL on the device that was run.
fn formulas(run: &Run) -> Option<(&'static Model, Device)> {
    Some((Model::find(&run.experiment.series)?, model_of(&run.experiment.spec)))
}

fn ram_total(run: &Run) -> f64 {
    run.result.ram_bytes.get("total").copied().unwrap_or_default() as f64
}

fn metadata_collection(run: &Run) -> f64 {
    let parts = &run.result.write_amplification.by_purpose;
    parts.translation_gc.paper + parts.validity_gc.paper
}

fn summary(runs: &[Run]) -> DataTable {
    let mut table = DataTable::new(
        "",
        "totals",
        &[
            "FTL",
            "RAM by formula at 2 TiB, MiB",
            "RAM by formula here, KiB",
            "RAM measured, KiB",
            "recovery by formula at 2 TiB, s",
            "recovery by formula here, s",
            "recovery measured, s",
            "write-amplification",
            "of it collecting metadata",
        ],
    );
    for run in runs {
        let Some((model, device)) = formulas(run) else { continue };
        table.row(vec![
            Cell::from(model.name),
            mib(model.ram_bytes(&Device::PAPER)).into(),
            (model.ram_bytes(&device) / 1024.0).into(),
            (ram_total(run) / 1024.0).into(),
            model.recovery_seconds(&Device::PAPER, &Times::PAPER).into(),
            model.recovery_seconds(&device, &Times::PAPER).into(),
            recovery_seconds(run).into(),
            run.result.write_amplification.paper.into(),
            metadata_collection(run).into(),
        ]);
    }
    table
}

fn ram(runs: &[Run]) -> DataTable {
    let mut table = DataTable::new(
        "ram",
        "RAM by structure",
        &["FTL", "structure", "by formula at 2 TiB, KiB", "by formula here, KiB", "measured, KiB"],
    );
    let kib = |bytes: f64| bytes / 1024.0;
    for run in runs {
        let Some((model, device)) = formulas(run) else { continue };
        let (full, here) = ((model.ram)(&Device::PAPER), (model.ram)(&device));
        for (at_full, at_here) in full.iter().zip(&here) {
            let measured = run.result.ram_bytes.get(at_full.name).map(|bytes| kib(*bytes as f64));
            table.row(vec![
                model.name.into(),
                at_full.name.into(),
                kib(at_full.bytes).into(),
                kib(at_here.bytes).into(),
                measured.into(),
            ]);
        }
        for (name, bytes) in &run.result.ram_bytes {
            if name != "total" && !full.iter().any(|structure| structure.name == name) {
                table.row(vec![
                    model.name.into(),
                    name.as_str().into(),
                    Cell::Empty,
                    Cell::Empty,
                    kib(*bytes as f64).into(),
                ]);
            }
        }
    }
    table
}

fn recovery(runs: &[Run]) -> DataTable {
    let mut table = DataTable::new(
        "recovery",
        "recovery by step",
        &["FTL", "from", "step", "reads", "spare area reads", "programs", "erases", "seconds"],
    );
    for run in runs {
        let Some((model, device)) = formulas(run) else { continue };
        for (from, device) in [("formula at 2 TiB", &Device::PAPER), ("formula here", &device)] {
            for step in (model.recovery)(device) {
                let seconds = step.seconds(&Times::PAPER);
                let numbers = [step.reads, step.spare_reads, step.programs, 0.0, seconds].map(Cell::from);
                table.row([model.name, from, step.name].map(Cell::from).into_iter().chain(numbers).collect());
            }
        }
        for step in run.result.mount.iter().flat_map(|mount| &mount.steps) {
            let f = &step.flash;
            let mut row = vec![model.name.into(), "measured".into(), step.name.as_str().into()];
            row.extend([f.reads, f.spare_reads, f.programs, f.erases].map(Cell::from));
            row.push(step.seconds.into());
            table.row(row);
        }
    }
    table
}

fn purposes(runs: &[Run]) -> DataTable {
    let mut table = DataTable::new(
        "write-amplification",
        "write-amplification by purpose",
        &["FTL", "group", "purpose", "programs per write", "with reads"],
    );
    for run in runs {
        for (purpose, part) in run.result.write_amplification.by_purpose.iter() {
            if part.paper > 0.0 {
                table.row(vec![
                    run.experiment.series.as_str().into(),
                    Group::of(purpose).name().into(),
                    purpose.name().into(),
                    part.programs.into(),
                    part.paper.into(),
                ]);
            }
        }
    }
    table
}

fn charts(runs: &[Run]) -> Vec<Chart> {
    let by_formula = |parts: &dyn Fn(&Model) -> Vec<Part>| {
        let bars = runs.iter().filter_map(formulas);
        bars.map(|(model, _)| Bar { label: model.name.to_owned(), parts: parts(model) }).collect::<Vec<_>>()
    };
    let chart = |name: &str, title: &str, axis: &str, bars: Vec<Bar>| Chart::Bars {
        name: name.to_owned(),
        title: title.to_owned(),
        axis: axis.to_owned(),
        bars,
    };
    let ram = |model: &Model| {
        let parts = (model.ram)(&Device::PAPER);
        parts.iter().map(|part| Part::new(part.name, mib(part.bytes))).collect::<Vec<_>>()
    };
    let steps = |model: &Model| {
        let parts = (model.recovery)(&Device::PAPER);
        parts.iter().map(|step| Part::new(step.name, step.seconds(&Times::PAPER))).collect::<Vec<_>>()
    };
    let measured_ram = runs.iter().map(|run| {
        let parts = run.result.ram_bytes.iter().filter(|(name, _)| name.as_str() != "total");
        Bar {
            label: run.experiment.series.clone(),
            parts: parts.map(|(name, bytes)| Part::new(name, *bytes as f64 / 1024.0)).collect(),
        }
    });
    let measured_steps = runs.iter().filter_map(|run| {
        let mount = run.result.mount.as_ref()?;
        let parts = mount.steps.iter().map(|step| Part::new(&step.name, step.seconds)).collect();
        Some(Bar { label: run.experiment.series.clone(), parts })
    });
    let mut charts = vec![
        chart("ram-formula", "RAM at 2 TiB, by formula", "MiB", by_formula(&ram)),
        chart("ram", "RAM measured", "KiB", measured_ram.collect()),
        chart("recovery-formula", "recovery at 2 TiB, by formula", "seconds", by_formula(&steps)),
    ];
    let steps: Vec<Bar> = measured_steps.collect();
    if !steps.is_empty() {
        charts.push(chart("recovery", "recovery measured", "seconds", steps));
    }
    charts.push(chart(
        "",
        "write-amplification measured",
        "programs + reads / δ per host page written",
        amplification_bars(runs),
    ));
    charts
}

fn run_of<'a>(runs: &'a [Run], name: &str) -> Option<&'a Run> {
    runs.iter().find(|run| run.experiment.series == name)
}

fn verdicts(runs: &[Run], skewed: &[Run]) -> Vec<Verdict> {
    let mut out = Vec::new();
    let named = |value: &dyn Fn(&Run) -> f64| -> Vec<(String, f64)> {
        runs.iter().map(|run| (run.experiment.series.clone(), value(run))).collect()
    };
    let total = named(&|run| run.result.write_amplification.paper);
    out.push(Verdict::least("write-amplification in all is least", "GeckoFTL least", &refs(&total), GECKO));
    out.extend(collection_verdicts(&named(&|run| {
        100.0 * metadata_collection(run) / run.result.write_amplification.paper
    })));
    let ram: Vec<(String, f64)> = named(&ram_total);
    let formula_ram = runs
        .iter()
        .filter_map(formulas)
        .map(|(model, _)| format!("{} {} MiB", model.name, short(mib(model.ram_bytes(&Device::PAPER)))));
    if let Some(bitmap) = run_of(runs, "dftl").or_else(|| run_of(runs, "lazy")) {
        let by_formula = |name: &str| {
            let run = run_of(runs, name)?;
            formulas(run).map(|(model, device)| model.ram_bytes(&device))
        };
        let of_device = by_formula(GECKO).zip(by_formula(&bitmap.experiment.series));
        let limit = of_device.map_or(0.0, |(gecko, bitmap)| 100.0 * (1.0 - gecko / bitmap) - RAM_SLACK_PERCENT);
        let (gecko, bitmap) = (find(&ram, GECKO), find(&ram, &bitmap.experiment.series));
        let index = run_of(runs, GECKO).and_then(|run| run.result.ram_bytes.get("victim_index")).copied();
        let why = format!(
            "the formulas leave out the index of victims, {} KiB of GeckoFTL's RAM here, and the links and the hash index of \
             cached entries",
            short(index.unwrap_or_default() as f64 / 1024.0)
        );
        let claim = "RAM in all is as far below that of an FTL with its bitmap in RAM as the formulas say, 5 points less at most";
        out.push(
            Verdict::below_by(claim, gecko, bitmap, limit.max(0.0).round())
                .with_formula(format!("at 2 TiB: {}", formula_ram.collect::<Vec<_>>().join(", ")))
                .unless_holds(&why),
        );
    }
    out.extend(validity_ram(runs));
    out.extend(recovery_verdict(runs));
    if let (Some(uftl), Some(gecko)) = (run_of(runs, "uftl"), run_of(runs, GECKO)) {
        out.push(Verdict::below_by(
            "write-amplification by page validity is 98% below that of a bitmap in flash",
            (GECKO, validity(&gecko.result)),
            ("uftl", validity(&uftl.result)),
            98.0,
        ));
    }
    out.extend(translation_verdicts(runs));
    out.extend(checkpoint_verdicts(runs, skewed));
    out
}

/// Percent of write-amplification that collection of metadata takes if an FTL does none, and at
/// least if it is significant.
const NO_COLLECTION_PERCENT: f64 = 1.0;
const COLLECTION_PERCENT: f64 = 10.0;

/// Claims about the share of write-amplification, percent, that collects metadata.
fn collection_verdicts(shares: &[(String, f64)]) -> Vec<Verdict> {
    let others = shares.iter().filter(|(name, _)| name != GECKO);
    let Some(least) = others.min_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
    vec![
        Verdict::at_most(
            "GeckoFTL collects no metadata, for such blocks are not collected",
            "none; here: 1% of its write-amplification",
            find(shares, GECKO).1,
            NO_COLLECTION_PERCENT,
            "%",
        )
        .unless_holds("where blocks run short, GeckoFTL here does move metadata, so that nothing waits for ever"),
        Verdict::at_least(
            "collecting metadata significantly increases the write-amplification of all others",
            "significantly; here: 10% of it",
            least.1,
            COLLECTION_PERCENT,
            &format!("%, the least, of {}", least.0),
        ),
    ]
}

/// Percent of write-amplification that is still negligible.
const NEGLIGIBLE_PERCENT: f64 = 2.0;

/// Checkpoints under uniform writes, as in the paper, and where the claim turns.
fn checkpoint_verdicts(runs: &[Run], skewed: &[Run]) -> Vec<Verdict> {
    let share = |run: &Run| {
        let wa = &run.result.write_amplification;
        100.0 * wa.by_purpose.checkpoint.paper / wa.paper
    };
    let uniform = run_of(runs, GECKO).map(|run| checkpoint_verdict("uniform writes, as in the paper", share(run)));
    let others = skewed
        .iter()
        .map(|run| checkpoint_verdict(&format!("`{}`, which is not in the paper", run.experiment.series), share(run)));
    uniform.into_iter().chain(others).collect()
}

fn checkpoint_verdict(workload: &str, percent: f64) -> Verdict {
    Verdict::at_most(
        &format!("checkpoints cost GeckoFTL a negligible amount under {workload}"),
        "negligible; here: 2% of its write-amplification",
        percent,
        NEGLIGIBLE_PERCENT,
        "%",
    )
    .unless_holds(
        "a checkpoint writes entries that stayed dirty since the one before. Under skewed writes hot entries stay dirty for \
         long, while write-amplification in all is small",
    )
}

/// By how much less RAM may be saved than formulas say, in percent of the RAM compared with.
const RAM_SLACK_PERCENT: f64 = 5.0;

fn refs(values: &[(String, f64)]) -> Vec<Named<'_>> {
    values.iter().map(|(name, value)| (name.as_str(), *value)).collect()
}

fn find<'a>(values: &'a [(String, f64)], name: &str) -> Named<'a> {
    values.iter().find(|(n, _)| n == name).map_or(("nothing", f64::NAN), |(name, value)| (name.as_str(), *value))
}

/// Structures that say which pages are dead.
const VALIDITY_STRUCTURES: [&str; 3] = ["run_directories", "gecko_buffers", "gecko_buffer"];

fn validity_ram(runs: &[Run]) -> Option<Verdict> {
    let (bitmap, gecko) = (run_of(runs, "dftl").or_else(|| run_of(runs, "lazy"))?, run_of(runs, GECKO)?);
    let of = |run: &Run, names: &[&str]| -> f64 {
        names.iter().filter_map(|name| run.result.ram_bytes.get(*name)).map(|bytes| *bytes as f64).sum()
    };
    let full = Device::PAPER;
    let formula = 100.0 * (1.0 - (full.run_directory_bytes() + full.gecko_buffer_bytes()) / full.pvb_bytes());
    let with_counters =
        100.0 * (1.0 - (full.run_directory_bytes() + full.gecko_buffer_bytes() + full.bvc_bytes()) / full.pvb_bytes());
    Some(
        Verdict::below_by(
            "RAM for page validity is 95% below a bitmap in RAM",
            ("run directories and buffers", of(gecko, &VALIDITY_STRUCTURES)),
            ("bitmap", of(bitmap, &["pvb"])),
            95.0,
        )
        .with_formula(format!("{formula:.1}% at 2 TiB; with its counters (BVC) {with_counters:.1}%"))
        .unless_holds(
            "buffers do not shrink with the device: there is one page for each level and the entries of one more, \
             beside a bitmap that is smaller by the scale",
        ),
    )
}

fn recovery_verdict(runs: &[Run]) -> Option<Verdict> {
    let (lazy, gecko) = (Model::find("lazy")?, Model::find(GECKO)?);
    let claim = "recovery takes at least 51% less time than LazyFTL's";
    let seconds = |model: &Model| model.recovery_seconds(&Device::PAPER, &Times::PAPER);
    let by_formula = Verdict::below_by(claim, (GECKO, seconds(gecko)), ("lazy", seconds(lazy)), 51.0);
    let measured = |name: &str| run_of(runs, name).and_then(recovery_seconds);
    Some(match (measured(GECKO), measured("lazy")) {
        (Some(ours), Some(theirs)) => Verdict::below_by(claim, (GECKO, ours), ("lazy", theirs), 51.0)
            .with_formula(format!("{} at 2 TiB", by_formula.ours)),
        _ => Verdict { claim: format!("{claim} (by formula)"), ..by_formula },
    })
}

/// Updates of translation pages that differ by no more are largely the same, percent.
const SAME_PERCENT: f64 = 10.0;

/// Why a tree may differ from a table of pages.
const TREE: &str = "an extent takes 8 B where an entry of the table takes 4, so that a leaf of the tree has room for half as many, and \
                    more leaves are written";

/// FTLs of which few entries may be dirty, and those of which all may be.
const CAPPED: [&str; 2] = ["lazy", "ib-ftl"];
const UNCAPPED: [&str; 3] = ["dftl", "uftl", GECKO];

/// Pages that an FTL programs to update its translation table, for each host write, without
/// collection of them. Reads are left out: only DFTL reads a page for each write that misses.
fn translation_updates(run: &Run) -> f64 {
    let parts = &run.result.write_amplification.by_purpose;
    parts.translation.programs + parts.checkpoint.programs
}

/// Claims about translation pages, as far as the FTLs that they name are there.
fn translation_verdicts(runs: &[Run]) -> Vec<Verdict> {
    let updates = |name: &&'static str| run_of(runs, name).map(|run| (*name, translation_updates(run)));
    let (capped, uncapped) = (CAPPED.iter().filter_map(updates), UNCAPPED.iter().filter_map(updates));
    update_verdicts(&capped.collect::<Vec<_>>(), &uncapped.collect::<Vec<_>>())
}

fn update_verdicts(capped: &[Named<'_>], uncapped: &[Named<'_>]) -> Vec<Verdict> {
    let Some(gecko) = uncapped.iter().find(|(name, _)| *name == GECKO) else { return Vec::new() };
    let most = uncapped.iter().map(|(_, updates)| *updates).fold(0.0, f64::max);
    let others = uncapped.iter().filter(|(name, _)| *name != GECKO).map(|(name, updates)| {
        let claim = format!("GeckoFTL updates its translation table with largely as many programs as {name}");
        let verdict = Verdict::near(&claim, "largely the same", gecko.1 / updates, 1.0, SAME_PERCENT);
        if *name == "uftl" { verdict.unless_holds(TREE) } else { verdict }
    });
    let higher = capped.iter().map(|(name, updates)| {
        let claim = format!("few dirty entries cost {name} more programs for that than GeckoFTL, dftl and uftl");
        let unit = " times the most of those";
        Verdict::at_least(&claim, "higher; here: by more than 10%", updates / most, 1.0 + SAME_PERCENT / 100.0, unit)
    });
    others.chain(higher).collect()
}

fn remarks(runs: &[Run]) -> Vec<String> {
    let mut out = vec![
        "measured RAM is what the structures of the running FTL hold, among them some that the formulas leave out: \
         the index of victims, the index of the cache, states of blocks, and the inner nodes of a tree, which the paper takes to \
         be cached (tree_nodes)"
            .to_owned(),
        "measured recovery is what the mount after a power cut did, one operation after the other; it guards against torn \
         pages and worn blocks, for which the formulas have no term"
            .to_owned(),
        format!(
            "power is cut between two requests. A page of host data that a cut tears costs GeckoFTL's mount nothing more if it is proven to \
             be the one programmed last; if not, for instance because it is the first of its block, the mount reads every \
             translation page too, for the page may be a worn one: {} s more at 2 TiB",
            short(Device::PAPER.translation_pages() as f64 * Times::PAPER.read_us / 1e6)
        ),
    ];
    out.extend(collections_left_out(runs));
    for run in runs {
        if let Some(saved) = run.result.mount.as_ref().and_then(|mount| mount.saved_before) {
            out.push(format!(
                "{} saved what only RAM held before power was gone: {} programs",
                run.experiment.series, saved.programs
            ));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_turn_just_past_their_limits() {
        let word = |verdicts: Vec<Verdict>| verdicts.iter().map(|verdict| verdict.holds).collect::<Vec<_>>();
        let shares = |dftl: f64, gecko: f64| {
            collection_verdicts(&[("dftl".to_owned(), dftl), ("lazy".to_owned(), 30.0), (GECKO.to_owned(), gecko)])
        };
        assert_eq!(word(shares(10.1, 0.9)), [true, true]);
        assert_eq!(word(shares(9.9, 1.1)), [false, false]);
        assert!(collection_verdicts(&[]).is_empty());
        assert!(checkpoint_verdict("w", 1.9).holds && !checkpoint_verdict("w", 2.1).holds);
        let updates = |lazy: f64, gecko: f64| update_verdicts(&[("lazy", lazy)], &[("dftl", 1.0), (GECKO, gecko)]);
        assert_eq!(word(updates(1.22, 1.09)), [true, true]);
        assert_eq!(word(updates(1.22, 1.12)), [false, false]);
        assert_eq!(word(updates(1.05, 0.89)), [false, false]);
        assert!(update_verdicts(&[("lazy", 1.0)], &[]).is_empty());
    }
}
