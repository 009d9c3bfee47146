//! Table 4 of LFTL: how long the card's 512 GiB take to be mounted.

use super::setting::{Setting, next_chance};
use crate::error::PaperError;
use crate::figure::{Conclude, Figure, no_runs};
use crate::lab::Lab;
use crate::outcome::{Bar, Chart, DataTable, Outcome, Part};
use crate::units::short;
use crate::verdict::Verdict;
use ::lftl::{Engine, Hollow, Level, Levels, Options, Policy, Recovery};
use nand::Lpn;

pub(super) const FIGURE: Figure = Figure {
    name: "lftl/table4",
    title: "time of a mount of the 512 GiB card, by what it reads",
    source: super::SOURCE,
    uses_traces: false,
    plan: no_runs,
    conclude: Conclude::Own(|lab, progress| measure(lab, &Setting::paper(lab)?, progress)),
};

/// A way to find a disk, and the paper's seconds.
struct Row {
    name: &'static str,
    paper: &'static str,
    paper_s: f64,
    /// How the card is filled: wholly, or a block and a half of each bank.
    full: bool,
    /// What was done before: a clean shutdown, or power loss right behind a checkpoint.
    clean: bool,
    recovery: Recovery,
    threads: usize,
}

const ROWS: [Row; 4] = [
    Row {
        name: "parallel scan of pages",
        paper: "about 30 min",
        paper_s: 1800.0,
        full: true,
        clean: false,
        recovery: Recovery::Scan,
        threads: 64,
    },
    Row {
        name: "linear scan of blocks",
        paper: "about 2 min",
        paper_s: 120.0,
        full: false,
        clean: false,
        recovery: Recovery::Bounded,
        threads: 1,
    },
    Row {
        name: "parallel scan of blocks",
        paper: "about 28 s",
        paper_s: 28.0,
        full: false,
        clean: false,
        recovery: Recovery::Bounded,
        threads: 64,
    },
    Row {
        name: "bounded parallel scan of blocks",
        paper: "2 to 3 s",
        paper_s: 3.0,
        full: false,
        clean: true,
        recovery: Recovery::Bounded,
        threads: 64,
    },
];

impl Row {
    fn verdict(&self, seconds: f64) -> Verdict {
        let claim = format!("{}: {}", self.name, self.paper);
        if self.clean {
            return Verdict::between(&claim, self.paper, seconds, BOUNDED_S, " s").unless_holds(
                "after a clean shutdown a mount reads as many blocks of a bank as its bound names, which is few; the paper does \
                 not say what its bound is",
            );
        }
        let near = Verdict::near(&claim, self.paper, seconds, self.paper_s, ALLOWED);
        Verdict { ours: format!("{} s", short(seconds)), ..near }
    }
}

/// The paper's bounded scan.
const BOUNDED_S: (f64, f64) = (2.0, 3.0);

const BANKS: u32 = 64;
/// How far a scan may be from the paper's, percent.
const ALLOWED: f64 = 15.0;
/// Logical pages for each page of flash.
const LOGICAL: f64 = 0.7;
/// Blocks of a bank that stay free before the mounts.
const FREE: u32 = 5;

/// The least blocks of a bank that are measured: of a card that is full, and of one that is not.
const LEAST: [u32; 2] = [32, 256];

/// Two states of a card with so many blocks a bank: shut down, and cut off behind a checkpoint.
struct State {
    options: Options,
    clean: Vec<Hollow>,
    cut: Vec<Hollow>,
}

impl State {
    fn new(setting: &Setting, blocks: u32, full: bool, seed: u64) -> Result<Self, PaperError> {
        let each = setting.profile.geometry.pages_per_block;
        let logical = (f64::from(BANKS * blocks * each) * LOGICAL) as u32;
        // Nothing is collected before it is necessary: every block is to be full.
        let level = Level { free_blocks: FREE - 2, live_pages: each - 1 };
        let options = Options { policy: Policy::WritePath, levels: Some(Levels([level; 3])), ..Options::new(logical) };
        let engine = Engine::format(setting.hollow(BANKS, blocks)?.into(), options.clone())?;
        let data = vec![0; setting.page_bytes()];
        let first = if full { logical } else { BANKS * each * 3 / 2 };
        (0..first).try_for_each(|page| engine.write(Lpn(page), 0, &data))?;
        let mut chance = seed;
        while full && engine.report().free_blocks > u64::from(BANKS * FREE) {
            chance = next_chance(chance);
            engine.write(Lpn((chance >> 33) as u32 % logical), 0, &data)?;
        }
        engine.flush()?;
        engine.checkpoint()?;
        let mut cut: Vec<Hollow> = engine.into_devices().into_kind()?;
        let copy = cut.iter_mut().map(Hollow::snapshot).collect();
        let (engine, _) = Engine::mount(copy, options.clone(), Recovery::Bounded, 1)?;
        Ok(Self { clean: engine.shut_down()?.into_kind()?, cut, options })
    }

    /// Seconds of a mount, until it knows where everything is.
    fn mount(&mut self, setting: &Setting, row: &Row) -> Result<f64, PaperError> {
        let banks = if row.clean { &mut self.clean } else { &mut self.cut };
        let banks = setting.on_card(banks.iter_mut().map(Hollow::snapshot).collect());
        setting.run(|| {
            let (_, report) = Engine::mount(banks, self.options.clone(), row.recovery, row.threads)?;
            debug_assert!(report.clean == row.clean);
            Ok(report.search_time.as_secs_f64())
        })
    }
}

const COLUMNS: [&str; 8] = [
    "what is read",
    "blocks a bank",
    "time, s",
    "blocks a bank",
    "time, s",
    "512 GiB, s",
    "the paper, s",
    "512 GiB, spare areas in 4 KiB, s",
];

/// The card of a driver that reads a whole page to get its spare area.
fn of_whole_pages(setting: &Setting) -> Setting {
    let mut setting = setting.clone();
    setting.profile.timing.spare_read_ns = setting.profile.timing.read_ns;
    setting.profile.limits.read_unit_bytes = setting.profile.geometry.page_bytes;
    setting
}

fn measure(lab: &Lab, setting: &Setting, progress: &dyn Fn(f64)) -> Result<Outcome, PaperError> {
    let all = setting.profile.geometry.blocks / BANKS;
    let sizes = |full: bool| {
        let blocks = ((f64::from(all) * lab.scale) as u32).max(LEAST[usize::from(!full)]);
        [blocks / 2, blocks]
    };
    let whole = of_whole_pages(setting);
    let cards = |full: bool| -> Result<Vec<State>, PaperError> {
        sizes(full).into_iter().map(|size| State::new(setting, size, full, lab.seed)).collect()
    };
    let mut cards = [cards(false)?, cards(true)?];
    progress(0.2);
    let mut table = DataTable::new("", "time of a mount", &COLUMNS);
    let (mut verdicts, mut bars) = (Vec::new(), Vec::new());
    for (index, row) in ROWS.iter().enumerate() {
        let mut times = |setting: &Setting| -> Result<Vec<f64>, PaperError> {
            cards[usize::from(row.full)].iter_mut().map(|card| card.mount(setting, row)).collect()
        };
        let (here, quick) = (times(&whole)?, times(setting)?);
        // A line through both sizes: what does not grow with the card is not multiplied.
        let sizes = sizes(row.full);
        let at = |times: &[f64]| {
            let slope = (times[1] - times[0]) / f64::from(sizes[1] - sizes[0]);
            times[1] + slope * f64::from(all - sizes[1])
        };
        let seconds = at(&here);
        verdicts.push(row.verdict(seconds));
        table.row(vec![
            row.name.into(),
            u64::from(sizes[0]).into(),
            here[0].into(),
            u64::from(sizes[1]).into(),
            here[1].into(),
            seconds.into(),
            row.paper_s.into(),
            at(&quick).into(),
        ]);
        bars.push(Bar { label: row.name.to_owned(), parts: vec![Part::new("here", seconds)] });
        progress(0.2 + 0.8 * (index + 1) as f64 / ROWS.len() as f64);
    }
    let mut setup = setting.sentences();
    setup.push(setting.own_sentence());
    setup.push(format!(
        "64 banks at two sizes; a line through both times gives that of {all} blocks a bank. For the scan of pages all but \
         {FREE} blocks of each bank are full"
    ));
    Ok(Outcome {
        setup,
        verdicts,
        charts: vec![Chart::Bars {
            name: String::new(),
            title: "time of a mount of the 512 GiB card".to_owned(),
            axis: "seconds".to_owned(),
            bars,
        }],
        tables: vec![table],
        remarks: vec![
            "the paper's times are those of a driver that reads a page of 32 KiB for each spare area: its parallel scan \
             of blocks takes 107 us a block, a page over the link; with the card's reads of 4 KiB the last column holds"
                .to_owned(),
            "scans of blocks are mounts after power loss right behind a checkpoint; all times end when the entries are known"
                .to_owned(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_scan_is_held_to_both_of_its_limits() {
        let holds = |seconds| ROWS[3].verdict(seconds).holds;
        assert!(holds(2.0) && holds(3.0) && !holds(1.9) && !holds(3.1));
    }

    #[test]
    fn a_driver_that_reads_4_kib_is_not_the_papers() {
        let row = &ROWS[2];
        let paper = Setting::paper(&Lab::default()).unwrap();
        let mut cards = [16, 32].map(|blocks| State::new(&paper, blocks, false, 1).unwrap());
        let mut times = |setting: &Setting| cards.each_mut().map(|card| card.mount(setting, row).unwrap());
        let (whole, quick) = (times(&of_whole_pages(&paper)), times(&paper));
        assert!(whole[1] > 4.0 * quick[1], "{whole:?} {quick:?}");
        assert!(whole[1] > whole[0], "it grows with the card: {whole:?}");
        assert_eq!(times(&paper), quick, "a run repeats");
    }
}
