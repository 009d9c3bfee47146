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
const IN_RAM_SETS: &str = "bitmap in RAM, 4 MB cache in sets";
const IN_FLASH_SETS: &str = "bitmap in flash, in sets, as much RAM measured";
const LOGARITHMIC_SETS: &str = "Logarithmic Gecko, in sets, as much RAM measured";

/// Ways of a set, where the cache is in sets.
const WAYS: u32 = 16;

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
/// the RAM that the design with the bitmap in RAM is measured to hold. The latter also with every
/// cache in sets, where an entry takes less than the paper counts.
fn plan(lab: &Lab) -> Result<Vec<Experiment>, SimError> {
    let device = lab.device(PROFILE, Shape::share(lab.scale))?;
    let small = ((Device::PAPER.cache_entries as f64 * lab.scale) as u32).max(64);
    let large = (f64::from(small) * LARGE_CACHE) as u32;
    let run = |series: &str, entries: u32, ways: u32, validity: Option<&'static str>| {
        gecko_run(lab, &device, series, 0.0, |spec| {
            spec.config.cache_entries = entries;
            spec.config.cache_ways = ways;
            spec.config.validity = validity;
        })
    };
    let measured = |series: &str, than: &Experiment, validity: Option<&'static str>| {
        let (ram, ways) = (sim::run::format(&than.spec)?, than.spec.config.cache_ways);
        let ram_with = |entries| sim::run::format(&run(series, entries, ways, validity)?.spec);
        run(series, entries_within(ram, (small, large), ram_with)?, ways, validity)
    };
    let in_ram = run(IN_RAM, small, 0, Some("ram-bitmap"))?;
    let in_ram_sets = run(IN_RAM_SETS, small, WAYS, Some("ram-bitmap"))?;
    let in_flash = [
        measured(IN_FLASH_MEASURED, &in_ram, Some(FLASH_BITMAP))?,
        measured(IN_FLASH_SETS, &in_ram_sets, Some(FLASH_BITMAP))?,
    ];
    let logarithmic = [measured(LOGARITHMIC_MEASURED, &in_ram, None)?, measured(LOGARITHMIC_SETS, &in_ram_sets, None)?];
    let paper = [in_ram, run(IN_FLASH, large, 0, Some(FLASH_BITMAP))?, run(LOGARITHMIC, large, 0, None)?];
    let ([in_flash, in_flash_sets], [logarithmic, logarithmic_sets]) = (in_flash, logarithmic);
    Ok(paper.into_iter().chain([in_flash, logarithmic, in_ram_sets, in_flash_sets, logarithmic_sets]).collect())
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
         large as the RAM allows that the first design is measured to hold in all; the last three are these again, \
         each with its cache in sets of {WAYS} ways",
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

/// What is asked of the runs by their names.
struct Of<'a>(&'a [Run]);

impl Of<'_> {
    fn value(&self, series: &str, value: impl Fn(&Run) -> f64) -> f64 {
        self.0.iter().find(|run| run.experiment.series == series).map_or(f64::NAN, value)
    }

    fn total(&self, series: &str) -> f64 {
        self.value(series, |run| run.result.write_amplification.paper)
    }

    fn translation(&self, series: &str) -> f64 {
        self.value(series, |run| amplification(&run.result, Group::Translation))
    }

    fn validity(&self, series: &str) -> f64 {
        self.value(series, |run| validity(&run.result))
    }

    fn ram(&self, series: &str) -> f64 {
        self.value(series, |run| run.result.ram_bytes.get("total").copied().unwrap_or_default() as f64)
    }

    fn entries(&self, series: &str) -> f64 {
        self.value(series, |run| f64::from(run.experiment.spec.config.cache_entries))
    }

    fn totals(&self, of: [&'static str; 3]) -> [Named<'static>; 3] {
        of.map(|name| (name, self.total(name)))
    }

    /// The claims again for designs that hold as much RAM as the first of them: page validity in
    /// RAM, as a bitmap in flash, as Logarithmic Gecko.
    fn at_equal_ram(&self, designs: [&'static str; 3], [which, it]: [&str; 2], an_entry: &str) -> Vec<Verdict> {
        let [in_ram, in_flash, logarithmic] = designs;
        let as_much = |name: &'static str| {
            let claim = format!("{name}: in all, in bytes, it is that of the design with the bitmap in RAM");
            Verdict::near(&claim, "equal", self.ram(name), self.ram(in_ram), 1.0)
        };
        let times = self.entries(logarithmic) / self.entries(in_ram);
        let equal = ("as much RAM", self.translation(logarithmic));
        let small = ("4 MB", self.translation(in_ram));
        vec![
            as_much(in_flash),
            as_much(logarithmic),
            Verdict::least(
                &format!("{which}, a large cache with Logarithmic Gecko costs least"),
                "GeckoFTL least",
                &self.totals(designs),
                logarithmic,
            ),
            Verdict::below_by(
                &format!("{it} updates of the translation table to nearly nothing"),
                equal,
                small,
                NEARLY_NOTHING_PERCENT,
            )
            .unless_holds(&format!(
                "{an_entry}: the RAM holds {times:.1} times the entries of the small cache, not {LARGE_CACHE}"
            )),
        ]
    }
}

fn verdicts(runs: &[Run]) -> Vec<Verdict> {
    let of = Of(runs);
    let between = |value: &dyn Fn(&str) -> f64| value(LOGARITHMIC) - value(LOGARITHMIC_MEASURED);
    let an_entry = between(&|name| of.ram(name)) / between(&|name| of.entries(name));
    let (small, large) = (("4 MB", of.translation(IN_RAM)), ("68 MB", of.translation(LOGARITHMIC)));
    let pvb = ("bitmap in flash", of.validity(IN_FLASH));
    let gecko = ("Logarithmic Gecko", of.validity(LOGARITHMIC));
    let mut verdicts = vec![
        Verdict::least(
            "a large cache with Logarithmic Gecko costs least",
            "GeckoFTL least",
            &of.totals([IN_RAM, IN_FLASH, LOGARITHMIC]),
            LOGARITHMIC,
        ),
        Verdict::below_by(
            "a large cache brings updates of the translation table to nearly nothing",
            large,
            small,
            NEARLY_NOTHING_PERCENT,
        )
        .unless_holds(&format!("each synchronisation now covers more entries, but {} a write remain", short(large.1))),
        Verdict::below_by("and page validity stays cheap", gecko, pvb, 98.0),
    ];
    verdicts.extend(of.at_equal_ram(
        [IN_RAM, IN_FLASH_MEASURED, LOGARITHMIC_MEASURED],
        ["also with as much RAM measured", "and brings"],
        &format!(
            "an entry takes {an_entry:.0} B with its links and its share of the hash index, where the paper counts \
             {CACHE_ENTRY_BYTES} B"
        ),
    ));
    let sets = format!("with caches in sets of {WAYS} ways and as much RAM measured");
    verdicts.extend(of.at_equal_ram(
        [IN_RAM_SETS, IN_FLASH_SETS, LOGARITHMIC_SETS],
        [&sets, "and in sets it brings"],
        "a full set lets a dirty entry go before as many of its translation page have gathered as one list gathers, and \
         beside entries of 7 B there are Logarithmic Gecko's buffers and directories",
    ));
    verdicts
}
