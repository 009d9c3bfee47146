//! Figure 14 of GeckoFTL: what RAM is best used for when there is enough for a bitmap.

use super::common::{FLASH_BITMAP, Group, PROFILE, amplification, amplification_bars, gecko_run, setup, validity};
use super::model::{CACHE_ENTRY_BYTES, Device};
use crate::figure::{Conclude, Experiment, Figure, Run};
use crate::lab::{Lab, Shape};
use crate::outcome::{Cell, Chart, DataTable, Outcome};
use crate::units::{mib, share, short};
use crate::verdict::{Named, Verdict};
use sim::SimError;

pub(super) const FIGURE: Figure = Figure {
    name: "gecko/fig14",
    title: "equal RAM: bitmap and small cache, or large cache and page validity in flash",
    source: "Dayan, Bonnet and Idreos, SIGMOD 2016, section 5.4",
    uses_traces: false,
    plan,
    conclude: Conclude::Runs(conclude),
};

/// RAM of the bitmap and of the small cache, over that of the small cache: 68 MB over 4 MB.
const LARGE_CACHE: f64 = 17.0;

const IN_RAM: &str = "bitmap in RAM, 4 MB cache";
const IN_FLASH: &str = "bitmap in flash, 68 MB cache";
const LOGARITHMIC: &str = "Logarithmic Gecko, 68 MB cache";

/// One FTL with three page-validity stores: the paper gives all three designs GeckoFTL's collector.
fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let device = lab.device(PROFILE, Shape::share(lab.scale))?;
    let small = ((Device::PAPER.cache_entries as f64 * lab.scale) as u32).max(64);
    let large = (f64::from(small) * LARGE_CACHE) as u32;
    let run = |series: &str, entries: u32, validity: Option<&'static str>| {
        gecko_run(lab, &device, series, 0.0, |spec| {
            spec.config.cache_entries = entries;
            spec.config.validity = validity;
        })
    };
    Ok(vec![
        run(IN_RAM, small, Some("ram-bitmap"))?,
        run(IN_FLASH, large, Some(FLASH_BITMAP))?,
        run(LOGARITHMIC, large, None)?,
    ])
}

fn conclude(lab: &Lab, runs: &[Run]) -> Outcome {
    let mut table = DataTable::new(
        "",
        "write-amplification and RAM",
        &[
            "design",
            "cached entries",
            "cache of 8 B an entry, KiB",
            "RAM measured, MiB",
            "user data",
            "translation",
            "page validity",
            "write-amplification",
        ],
    );
    for run in runs {
        let entries = u64::from(run.experiment.spec.config.cache_entries);
        let mut row = vec![
            Cell::from(run.experiment.series.as_str()),
            entries.into(),
            ((entries * CACHE_ENTRY_BYTES) as f64 / 1024.0).into(),
            mib(run.result.ram_bytes.get("total").copied().unwrap_or_default() as f64).into(),
        ];
        row.extend(Group::ALL.map(|group| Cell::from(amplification(&run.result, group))));
        row.push(run.result.write_amplification.paper.into());
        table.row(row);
    }
    let mut setup = setup(lab, runs);
    setup.push(format!(
        "all three are the same FTL (translation pages behind a cache, collector that leaves metadata alone) with \
         another page-validity store; caches are {} of the paper's 4 and 68 MB",
        share(lab.scale)
    ));
    Outcome {
        setup,
        verdicts: verdicts(runs),
        charts: vec![Chart::Bars {
            name: String::new(),
            title: "write-amplification".to_owned(),
            axis: "programs + reads / δ per host page written".to_owned(),
            bars: amplification_bars(runs),
        }],
        tables: vec![table],
        remarks: vec![
            "the paper's second design keeps its translation table in a B-tree; here all three keep it in pages, so that \
             they differ in page validity and cache alone"
                .to_owned(),
        ],
    }
}

fn verdicts(runs: &[Run]) -> Vec<Verdict> {
    let of = |series: &str, value: &dyn Fn(&Run) -> f64| {
        runs.iter().find(|run| run.experiment.series == series).map_or(f64::NAN, value)
    };
    let total = |run: &Run| run.result.write_amplification.paper;
    let translation = |run: &Run| amplification(&run.result, Group::Translation);
    let names = [IN_RAM, IN_FLASH, LOGARITHMIC];
    let totals: Vec<Named<'_>> = names.iter().map(|name| (*name, of(name, &total))).collect();
    let small = ("4 MB", of(IN_RAM, &translation));
    let large = ("68 MB", of(LOGARITHMIC, &translation));
    let pvb = ("bitmap in flash", of(IN_FLASH, &|run| validity(&run.result)));
    let gecko = ("Logarithmic Gecko", of(LOGARITHMIC, &|run| validity(&run.result)));
    vec![
        Verdict::least("a large cache with Logarithmic Gecko costs least", "GeckoFTL least", &totals, LOGARITHMIC),
        Verdict::below_by(
            "a large cache brings updates of the translation table to nearly nothing",
            large,
            small,
            80.0,
        )
        .unless_holds(&format!("each synchronisation now covers more entries, but {} a write remain", short(large.1))),
        Verdict::below_by("and page validity stays cheap", gecko, pvb, 95.0),
    ]
}
