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
const IN_FLASH_MEASURED: &str = "bitmap in flash, as much RAM measured";
const LOGARITHMIC_MEASURED: &str = "Logarithmic Gecko, as much RAM measured";

/// The cached entries with which an FTL holds at most so many bytes of RAM; RAM is linear in them.
fn entries_within(
    ram: u64,
    (few, many): (u32, u32),
    ram_with: impl Fn(u32) -> Result<u64, SimError>,
) -> Result<u32, SimError> {
    let (least, most) = (ram_with(few)?, ram_with(many)?);
    let an_entry = most.saturating_sub(least) as f64 / f64::from(many - few);
    let more = (ram.saturating_sub(least) as f64 / an_entry.max(1.0)) as u32;
    Ok(few + more)
}

/// One FTL with three page-validity stores: the paper gives all three designs GeckoFTL's collector.
/// Two of them once with the cache that the paper gives them, and once with as many entries as fit
/// the RAM that the design with the bitmap in RAM is measured to hold.
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
    let in_ram = run(IN_RAM, small, Some("ram-bitmap"))?;
    let ram = sim::run::format(&in_ram.spec)?;
    let measured = |series: &str, validity: Option<&'static str>| {
        let ram_with = |entries| sim::run::format(&run(series, entries, validity)?.spec);
        run(series, entries_within(ram, (small, large), ram_with)?, validity)
    };
    Ok(vec![
        in_ram,
        run(IN_FLASH, large, Some(FLASH_BITMAP))?,
        run(LOGARITHMIC, large, None)?,
        measured(IN_FLASH_MEASURED, Some(FLASH_BITMAP))?,
        measured(LOGARITHMIC_MEASURED, None)?,
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
        "all are the same FTL (translation pages behind a cache, collector that leaves metadata alone) with another \
         page-validity store; caches are {} of the paper's 4 and 68 MB, which are of 8 B an entry; two more are as \
         large as the RAM allows that the first design is measured to hold in all",
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

/// What drops by so much drops to nearly nothing.
const NEARLY_NOTHING_PERCENT: f64 = 90.0;

fn verdicts(runs: &[Run]) -> Vec<Verdict> {
    let of = |series: &str, value: &dyn Fn(&Run) -> f64| {
        runs.iter().find(|run| run.experiment.series == series).map_or(f64::NAN, value)
    };
    let total = |run: &Run| run.result.write_amplification.paper;
    let translation = |run: &Run| amplification(&run.result, Group::Translation);
    let ram = |run: &Run| run.result.ram_bytes.get("total").copied().unwrap_or_default() as f64;
    let entries = |run: &Run| f64::from(run.experiment.spec.config.cache_entries);
    let named = |names: [&'static str; 3]| names.map(|name| (name, of(name, &total)));
    let totals: [Named<'_>; 3] = named([IN_RAM, IN_FLASH, LOGARITHMIC]);
    let measured: [Named<'_>; 3] = named([IN_RAM, IN_FLASH_MEASURED, LOGARITHMIC_MEASURED]);
    let as_much = |name: &'static str| {
        let claim = format!("{name}: in all, in bytes, it is that of the design with the bitmap in RAM");
        Verdict::near(&claim, "equal", of(name, &ram), of(IN_RAM, &ram), 1.0)
    };
    let between = |value: &dyn Fn(&Run) -> f64| of(LOGARITHMIC, value) - of(LOGARITHMIC_MEASURED, value);
    let an_entry = between(&ram) / between(&entries);
    let equal = ("as much RAM", of(LOGARITHMIC_MEASURED, &translation));
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
            NEARLY_NOTHING_PERCENT,
        )
        .unless_holds(&format!("each synchronisation now covers more entries, but {} a write remain", short(large.1))),
        Verdict::below_by("and page validity stays cheap", gecko, pvb, 98.0),
        as_much(IN_FLASH_MEASURED),
        as_much(LOGARITHMIC_MEASURED),
        Verdict::least(
            "also with as much RAM measured, a large cache with Logarithmic Gecko costs least",
            "GeckoFTL least",
            &measured,
            LOGARITHMIC_MEASURED,
        ),
        Verdict::below_by(
            "and brings updates of the translation table to nearly nothing",
            equal,
            small,
            NEARLY_NOTHING_PERCENT,
        )
        .unless_holds(&format!(
            "an entry takes {:.0} B with its links and its share of the hash index, where the paper counts {CACHE_ENTRY_BYTES} B: \
             the RAM holds {:.1} times the entries of the small cache, not {LARGE_CACHE}",
            an_entry,
            of(LOGARITHMIC_MEASURED, &entries) / of(IN_RAM, &entries)
        )),
    ]
}
