//! Every FTL of the table against a plain model, on many geometries: any sequence of operations,
//! every read checked, invariants checked.

#![allow(clippy::unwrap_used)]

use super::capabilities;
use ftl::{Config, Flash, Ftl, FtlError, JanusOptions, WearOptions, ftls, validity, victim};
use nand::geometry::Dimensions;
use nand::{Capabilities, Geometry, Lpn, Payload, ProgramOrder, SimNand, Stamp};
use openftl_ftl as ftl;
use proptest::prelude::*;

/// A device and how much of it the host sees.
#[derive(Clone, Copy, Debug)]
struct Shape {
    blocks: u32,
    pages_per_block: u32,
    page_bytes: u32,
    channels: u32,
    lanes: u32,
    cache_entries: u32,
}

const SHAPES: [Shape; 8] = [
    Shape { blocks: 16, pages_per_block: 8, page_bytes: 512, channels: 1, lanes: 1, cache_entries: 2 },
    Shape { blocks: 24, pages_per_block: 7, page_bytes: 512, channels: 1, lanes: 1, cache_entries: 5 },
    Shape { blocks: 40, pages_per_block: 12, page_bytes: 1024, channels: 1, lanes: 1, cache_entries: 16 },
    Shape { blocks: 64, pages_per_block: 16, page_bytes: 512, channels: 2, lanes: 2, cache_entries: 9 },
    Shape { blocks: 60, pages_per_block: 33, page_bytes: 1536, channels: 4, lanes: 4, cache_entries: 64 },
    Shape { blocks: 300, pages_per_block: 4, page_bytes: 512, channels: 1, lanes: 1, cache_entries: 40 },
    Shape { blocks: 32, pages_per_block: 130, page_bytes: 512, channels: 1, lanes: 1, cache_entries: 100 },
    Shape { blocks: 400, pages_per_block: 64, page_bytes: 2048, channels: 1, lanes: 1, cache_entries: 64 },
];

fn geometry(shape: Shape) -> Geometry {
    Geometry::new(Dimensions {
        channels: shape.channels,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: shape.blocks,
        pages_per_block: shape.pages_per_block,
        page_bytes: shape.page_bytes,
        spare_bytes: 32,
    })
    .unwrap()
}

/// What every NAND made today can do, and the order of programs that an FTL needs.
fn device(entry: &ftls::Entry<SimNand>, geometry: Geometry) -> SimNand {
    SimNand::new(geometry, capabilities(&entry.info))
}

/// Whether an FTL does as the configuration asks; it says so if not.
fn accepts(entry: &ftls::Entry<SimNand>, config: Config) -> bool {
    match (entry.format)(Flash::new(device(entry, geometry(SHAPES[7]))), &config) {
        Ok(_) => true,
        Err(FtlError::Unsupported { reason, .. }) if reason.contains("wear") => false,
        Err(error) => panic!("{}: {error}", entry.info.name),
    }
}

/// The largest disk that an FTL will make of a device: it says so when it refuses a larger one. A
/// device too small for the FTL gets more blocks, just enough.
fn largest(entry: &ftls::Entry<SimNand>, shape: Shape, config: Config) -> (Box<dyn Ftl<SimNand>>, Config) {
    let make = |blocks, logical_pages| {
        let device = device(entry, geometry(Shape { blocks, ..shape }));
        (entry.format)(Flash::new(device), &Config { logical_pages, ..config })
    };
    let mut blocks = shape.blocks;
    while make(blocks, 1).is_err() {
        blocks += shape.channels;
        assert!(blocks < 8 * shape.blocks, "{} fits nothing like {shape:?}, {config:?}", entry.info.name);
    }
    let mut fits = (1, blocks * shape.pages_per_block);
    while fits.1 - fits.0 > 1 {
        let middle = u32::midpoint(fits.0, fits.1);
        if make(blocks, middle).is_ok() { fits.0 = middle } else { fits.1 = middle }
    }
    (make(blocks, fits.0).unwrap(), Config { logical_pages: fits.0, ..config })
}

/// Every FTL, with every page-validity store if it has one.
fn compositions() -> Vec<(ftls::Entry<SimNand>, Option<&'static str>)> {
    let mut all = Vec::new();
    for at in 0..table::table::<SimNand>().len() {
        let entry = || table::table::<SimNand>().into_iter().nth(at).unwrap();
        all.push((entry(), None));
        let other = |store: &&validity::Entry| entry().info.validity.is_some_and(|own| own != store.name);
        all.extend(validity::table().iter().filter(other).map(|store| (entry(), Some(store.name))));
    }
    all
}

fn config(shape: Shape, victim: &'static str, placement: &'static str) -> Config {
    Config {
        lanes: shape.lanes,
        cache_entries: shape.cache_entries,
        victim,
        placement: Some(placement),
        ..Config::new(1)
    }
}

/// Janus-FTL with all that goes beyond its paper.
const BEYOND: JanusOptions =
    JanusOptions { defuse_among: 6, learn_utilisation: true, page_map_percent: 40, ..JanusOptions::PAPER };

#[derive(Clone, Debug)]
enum Step {
    Write(u32),
    Overwrite(u32),
    Read(u32),
    Trim(u32, u32),
    Flush,
    Idle,
    Fill,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => any::<u32>().prop_map(Step::Write),
        30 => any::<u32>().prop_map(Step::Overwrite),
        20 => any::<u32>().prop_map(Step::Read),
        4 => (any::<u32>(), 0..40_u32).prop_map(|(at, count)| Step::Trim(at, count)),
        2 => Just(Step::Flush),
        4 => Just(Step::Idle),
        1 => Just(Step::Fill),
    ];
    prop::collection::vec(step, 1..400)
}

/// What each logical page should read as: 0 if it was never written, or trimmed.
struct Model {
    versions: Vec<u16>,
    next: u16,
}

impl Model {
    fn expected(&self, lpn: u32) -> Stamp {
        match self.versions[lpn as usize] {
            0 => Stamp::UNWRITTEN,
            version => Stamp { lpn: Lpn(lpn), version },
        }
    }

    fn write(&mut self, ftl: &mut dyn Ftl<SimNand>, lpn: u32) -> Result<(), FtlError> {
        self.next = self.next % 60_000 + 1;
        ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: self.next })?;
        self.versions[lpn as usize] = self.next;
        Ok(())
    }

    fn check(&self, ftl: &mut dyn Ftl<SimNand>, lpn: u32) {
        let mut got = Stamp::UNWRITTEN;
        ftl.read(Lpn(lpn), &mut got).unwrap();
        assert_eq!(got, self.expected(lpn), "logical page {lpn}");
    }
}

fn run(ftl: &mut dyn Ftl<SimNand>, steps: &[Step]) {
    let pages = ftl.logical_pages();
    let mut model = Model { versions: vec![0; pages as usize], next: 0 };
    for step in steps {
        match *step {
            Step::Write(at) => model.write(ftl, at % pages).unwrap(),
            Step::Overwrite(at) => {
                for i in 0..at % 50 {
                    model.write(ftl, (at / 64 + i * (at % 7)) % pages.div_ceil(5)).unwrap();
                }
            }
            Step::Read(at) => model.check(ftl, at % pages),
            Step::Trim(at, count) => {
                let (at, count) = (at % pages, count.min(pages - at % pages));
                ftl.trim(Lpn(at), count).unwrap();
                model.versions[at as usize..(at + count) as usize].fill(0);
            }
            Step::Flush => ftl.flush().unwrap(),
            Step::Idle => {
                ftl.idle().unwrap();
            }
            Step::Fill => (0..pages).for_each(|lpn| model.write(ftl, lpn).unwrap()),
        }
    }
    ftl.check().unwrap();
    (0..pages).for_each(|lpn| model.check(ftl, lpn));
    ftl.check().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_ftl_agrees_with_the_model(
        steps in steps(),
        shape in prop::sample::select(&SHAPES[..]),
        victim in prop::sample::select(victim::table().iter().map(|entry| entry.name).collect::<Vec<_>>()),
        placement in prop::sample::select(vec!["split", "single"]),
        levels_wear: bool,
        beyond: bool,
    ) {
        let janus = if beyond { BEYOND } else { JanusOptions::PAPER };
        let wear = levels_wear.then_some(WearOptions { spread: 1, scans: 8 });
        for (entry, validity) in compositions() {
            let config = Config { wear, validity, janus, ..config(shape, victim, placement) };
            if !accepts(&entry, config) {
                continue;
            }
            let (mut ftl, _) = largest(&entry, shape, config);
            run(&mut *ftl, &steps);
        }
    }
}

#[test]
fn every_ftl_runs_for_ever_on_a_full_device() {
    for (shape, wear) in SHAPES.iter().flat_map(|shape| [(*shape, None), (*shape, Some(WearOptions::default()))]) {
        for (entry, validity) in compositions() {
            let config = Config { wear, validity, ..config(shape, "greedy", "split") };
            if !accepts(&entry, config) {
                continue;
            }
            let (mut ftl, config) = largest(&entry, shape, config);
            let pages = config.logical_pages;
            let mut model = Model { versions: vec![0; pages as usize], next: 0 };
            (0..pages).for_each(|lpn| model.write(&mut *ftl, lpn).unwrap());
            let mut state = 12345_u32;
            for i in 0..20_000_u32 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let skewed = if state & 7 == 0 { state >> 8 } else { (state >> 8) % pages.div_ceil(8) };
                model.write(&mut *ftl, skewed % pages).unwrap_or_else(|e| {
                    panic!("{} over {validity:?} on {shape:?} after {i} writes: {e}", entry.info.name)
                });
            }
            ftl.check().unwrap_or_else(|e| panic!("{} over {validity:?} on {shape:?}: {e}", entry.info.name));
            (0..pages).for_each(|lpn| model.check(&mut *ftl, lpn));
        }
    }
}

#[test]
fn a_read_changes_nothing_on_flash_unless_the_table_is_cached() {
    let shape = SHAPES[2];
    for entry in table::table::<SimNand>() {
        if entry.info.honours(ftl::Setting::CacheEntries) {
            continue;
        }
        let name = entry.info.name;
        let (mut ftl, config) = largest(&entry, shape, config(shape, "greedy", "split"));
        if ftl.ram().iter().any(|item| item.name == "gmd") {
            continue;
        }
        for turn in 0..20 * config.logical_pages {
            let lpn = Lpn(turn * 7 % config.logical_pages);
            ftl.write(lpn, &Stamp { lpn, version: (turn % 60_000) as u16 + 1 }).unwrap();
            let before = ftl.flash().counts().total();
            ftl.read(lpn, &mut Stamp::UNWRITTEN.clone()).unwrap();
            let after = ftl.flash().counts().total();
            let changes = (after.programs - before.programs, after.erases - before.erases);
            assert_eq!(changes, (0, 0), "{name}: programs and erases of the read after {turn} writes");
        }
    }
}

#[test]
fn janus_beyond_its_paper_runs_for_ever_on_a_full_device() {
    for shape in SHAPES {
        for entry in table::table::<SimNand>().into_iter().filter(|entry| entry.info.name.starts_with("janus")) {
            let (mut ftl, config) =
                largest(&entry, shape, Config { janus: BEYOND, ..config(shape, "greedy", "split") });
            let pages = config.logical_pages;
            let mut model = Model { versions: vec![0; pages as usize], next: 0 };
            let mut state = 54_321_u32;
            for _ in 0..3 * pages {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let skewed = if state & 7 == 0 { state >> 8 } else { (state >> 8) % pages.div_ceil(8) };
                model.write(&mut *ftl, skewed % pages).unwrap();
            }
            ftl.check().unwrap_or_else(|e| panic!("{} on {shape:?}: {e}", entry.info.name));
            (0..pages).for_each(|lpn| model.check(&mut *ftl, lpn));
        }
    }
}

#[test]
fn requests_outside_the_device_are_refused_and_harmless() {
    for entry in table::table::<SimNand>() {
        let (mut ftl, config) = largest(&entry, SHAPES[2], config(SHAPES[2], "greedy", "split"));
        let end = Lpn(config.logical_pages);
        let mut out = Stamp::UNWRITTEN;
        out.clear();
        assert!(matches!(ftl.read(end, &mut out), Err(FtlError::OutOfRange { .. })));
        assert!(matches!(ftl.write(end, &out), Err(FtlError::OutOfRange { .. })));
        assert!(matches!(ftl.trim(Lpn(end.0 - 1), 2), Err(FtlError::OutOfRange { .. })));
        assert!(ftl.trim(Lpn(end.0 - 1), 1).is_ok());
        assert!(matches!(ftl.trim(Lpn(u32::MAX), u32::MAX), Err(FtlError::OutOfRange { .. })));
        assert_eq!(ftl.flash().counts().total().programs, 0);
        ftl.check().unwrap();
    }
}

#[test]
fn a_refused_device_is_told_what_would_fit() {
    for entry in table::table::<SimNand>() {
        let device = device(&entry, geometry(SHAPES[0]));
        let config = Config { cache_entries: 4, ..Config::new(16 * 8) };
        let Err(error) = (entry.format)(Flash::new(device), &config) else { panic!("{} accepted", entry.info.name) };
        let text = error.to_string();
        let remedies = ["ask for 1 to ", "a device of at least "];
        assert!(text.contains(entry.info.name) && remedies.iter().any(|remedy| text.contains(remedy)), "{text}");
        assert!(!text.contains("1 to 0 "), "{text}");
    }
}

#[test]
fn a_store_that_is_not_there_or_means_nothing_is_refused() {
    for entry in table::table::<SimNand>() {
        for (name, wanted) in [("log", "keeps no page-validity store"), ("lgo", "ram-bitmap, flash-bitmap, log, gecko")]
        {
            if entry.info.validity.is_some() && name == "log" {
                continue;
            }
            let device = device(&entry, geometry(SHAPES[7]));
            let config = Config { validity: Some(name), ..Config::new(100) };
            let Err(error) = (entry.format)(Flash::new(device), &config) else {
                panic!("{} accepted", entry.info.name)
            };
            let wanted = if entry.info.validity.is_none() { "keeps no page-validity store" } else { wanted };
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }
}

#[test]
fn a_device_with_another_program_order_than_an_ftl_needs_is_refused() {
    for entry in table::table::<SimNand>() {
        for program_order in [ProgramOrder::Sequential, ProgramOrder::Free] {
            let capabilities = Capabilities { program_order, ..capabilities(&entry.info) };
            let device = || Flash::new(SimNand::new(geometry(SHAPES[7]), capabilities));
            let config = config(SHAPES[7], "greedy", "split");
            let made = (entry.format)(device(), &config).map(drop);
            let mounted = entry.mount.map(|mount| mount(device(), &config).map(drop));
            for answer in [Some(made), mounted].into_iter().flatten() {
                match answer {
                    Err(FtlError::Unsupported { reason, .. }) if reason.contains("program order") => {
                        assert!(!entry.info.runs_on(capabilities), "{}: {reason}", entry.info.name);
                    }
                    _ => assert!(entry.info.runs_on(capabilities), "{}", entry.info.name),
                }
            }
        }
    }
}
