//! No FTL allocates once it is made: every method that a host calls, over every page-validity
//! store, on a fresh disk and on a mounted one, while garbage is collected, maps are brought up to
//! date, logs are merged, wear is levelled and blocks fail.

#![allow(clippy::unwrap_used)]

use super::capabilities;
use ftl::{
    Config, Counts, Flash, Ftl, FtlError, GeckoOptions, JanusOptions, OpCounts, Purpose, Setting, WearOptions, ftls,
    validity,
};
use nand::geometry::Dimensions;
use nand::{
    BlockId, Capabilities, FaultPlan, Faulty, Flags, Geometry, Lpn, Nand, NandError, Ppn, SimNand, Spare, Stamp,
    Stamped,
};
use openftl_ftl as ftl;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::{Arc, Mutex};
use table::AnyBytes;

thread_local! {
    /// Allocations of this thread since they are counted; `None` while they are not.
    static ALLOCATIONS: Cell<Option<u64>> = const { Cell::new(None) };
}

struct Counting;

fn note() {
    // Threads that end have no counter any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get().map(|count| count + 1)));
}

// SAFETY: every call goes to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as this function's caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as this function's caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: as this function's caller promised.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as this function's caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Does something and answers how often it allocated.
fn allocations_of(act: impl FnOnce()) -> u64 {
    ALLOCATIONS.set(Some(0));
    act();
    ALLOCATIONS.replace(None).unwrap()
}

/// A simulated device, which may allocate: what it does is not counted. Clones lead to the same
/// one.
#[derive(Clone)]
struct Device {
    flash: Arc<Mutex<Faulty<SimNand>>>,
    geometry: Geometry,
}

impl Device {
    fn uncounted<T>(&self, act: impl FnOnce(&mut Faulty<SimNand>) -> T) -> T {
        let count = ALLOCATIONS.take();
        let outcome = act(&mut self.flash.lock().unwrap());
        ALLOCATIONS.set(count);
        outcome
    }

    /// The device for an FTL, which takes it for one of bytes.
    fn flash(&self) -> Flash<AnyBytes> {
        Flash::new(Box::new(Stamped(self.clone())))
    }
}

impl Nand for Device {
    type Payload = Stamp;

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn capabilities(&self) -> Capabilities {
        self.uncounted(|nand| nand.capabilities())
    }

    fn read(&mut self, ppn: Ppn, out: &mut Stamp) -> Result<Spare, NandError> {
        self.uncounted(|nand| nand.read(ppn, out))
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.uncounted(|nand| nand.read_meta(ppn, out))
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        self.uncounted(|nand| nand.read_spare(ppn))
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.uncounted(|nand| nand.probe(ppn))
    }

    fn program(&mut self, ppn: Ppn, data: &Stamp, spare: &Spare) -> Result<(), NandError> {
        self.uncounted(|nand| nand.program(ppn, data, spare))
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.uncounted(|nand| nand.program_meta(ppn, data, spare))
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        self.uncounted(|nand| nand.copy(from, to, spare))
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        self.uncounted(|nand| nand.erase(block))
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.uncounted(|nand| nand.is_bad(block))
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        self.uncounted(|nand| nand.mark_bad(block))
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        self.uncounted(|nand| nand.clear_flags(ppn, flags))
    }
}

const BLOCKS: u32 = 240;
const PAGES_PER_BLOCK: u32 = 16;
const PAGES: u32 = BLOCKS * PAGES_PER_BLOCK / 2;

/// What every NAND made today can do, and the order of programs that an FTL needs.
fn device(entry: &ftls::Entry<AnyBytes>) -> Device {
    let capabilities = capabilities(&entry.info);
    let geometry = Geometry::new(Dimensions {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: BLOCKS,
        pages_per_block: PAGES_PER_BLOCK,
        page_bytes: 512,
        spare_bytes: 32,
    })
    .unwrap();
    let nand = Faulty::new(SimNand::new(geometry, capabilities), FaultPlan::default());
    Device { flash: Arc::new(Mutex::new(nand)), geometry }
}

/// A way to make an FTL.
struct Composition {
    entry: ftls::Entry<AnyBytes>,
    config: Config,
    what: String,
}

/// Every FTL, as published, over every page-validity store, levelling wear, and with what goes
/// beyond its paper.
fn compositions() -> Vec<Composition> {
    let plain = Config { cache_entries: 60, ..Config::new(PAGES) };
    let janus = JanusOptions { defuse_among: 6, learn_utilisation: true, page_map_percent: 40, ..JanusOptions::PAPER };
    let gecko =
        GeckoOptions { packed: true, buffer_pages: 2, filter_bytes: 4096, spread_ops: 1, ..GeckoOptions::PAPER }.into();
    let mut configs = vec![
        plain,
        Config { lanes: 2, wear: Some(WearOptions { spread: 1, scans: 4 }), victim: "cost-benefit", ..plain },
        Config { janus, gecko, cache_ways: 4, victim: "fifo", placement: Some("single"), ..plain },
    ];
    configs.extend(validity::table().iter().map(|store| Config { validity: Some(store.name), ..plain }));
    let rows = table::table::<AnyBytes>().len();
    let all = (0..rows).flat_map(|row| configs.iter().map(move |config| (row, *config)));
    all.filter_map(|(row, config)| {
        let entry = table::table::<AnyBytes>().into_iter().nth(row)?;
        let what = format!("{} with {config:?}", entry.info.name);
        match (entry.format)(device(&entry).flash(), &config) {
            Ok(_) => Some(Composition { entry, config, what }),
            // Levelling, or a store, that means nothing to it.
            Err(FtlError::Unsupported { reason, .. }) if reason.contains("wear") || reason.contains("store") => None,
            Err(error) => panic!("{what}: {error}"),
        }
    })
    .collect()
}

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) >> 16) as u32 % end
    }
}

/// Counts the allocations of a method, which should be none.
fn counted(
    ftl: &mut dyn Ftl<AnyBytes>,
    what: &str,
    act: impl FnOnce(&mut dyn Ftl<AnyBytes>) -> Result<(), FtlError>,
) -> Result<(), String> {
    let before = *ftl.flash().counts();
    let mut outcome = Ok(());
    let allocations = allocations_of(|| outcome = act(ftl));
    outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    if allocations > 0 {
        let since = ftl.flash().counts().since(&before);
        let done: Vec<(&str, OpCounts)> =
            Purpose::ALL.iter().map(|p| (p.name(), *since.of(*p))).filter(|(_, c)| *c != OpCounts::default()).collect();
        return Err(format!("{what}: {allocations} allocation(s) while it did {done:?}"));
    }
    Ok(())
}

/// Looks away.
struct Blind;

impl ftl::Inspector for Blind {}

/// What fails while a disk is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failing {
    Nothing,
    Erases,
    /// Programs too. They leave pages behind that cannot be read.
    All,
}

/// Everything that a host does, on a disk that is full after a while.
fn use_it(
    ftl: &mut dyn Ftl<AnyBytes>,
    device: &Device,
    what: &str,
    rng: &mut Rng,
    failing: Failing,
) -> Result<(), String> {
    for i in 0..12_000_u32 {
        device.uncounted(|flash| {
            let op = flash.ops() + u64::from(rng.below(50));
            match i % 1200 {
                0 if failing != Failing::Nothing => flash.plan_mut().failing_blocks.push(BlockId(rng.below(BLOCKS))),
                600 if failing == Failing::All => flash.plan_mut().failing_programs.push(op),
                _ => {}
            }
        });
        let lpn = match i % 8 {
            // In sequence, so that log blocks can become data blocks; within few pages; anywhere.
            0..=2 => i / 8 * 3 % PAGES + i % 8,
            3 => rng.below(PAGES / 16),
            _ => rng.below(PAGES),
        };
        let lpn = Lpn(lpn % PAGES);
        let near = [lpn, Lpn(rng.below(PAGES))];
        let stamp = Stamp { lpn, version: i as u16 | 1 }.to_bytes();
        let on = |method: &str| format!("{method} {i} of {what}");
        counted(ftl, &on("hint"), |ftl| {
            ftl.hint(&near);
            Ok(())
        })?;
        counted(ftl, &on("write"), |ftl| ftl.write(lpn, &stamp))?;
        if i % 101 == 0 {
            counted(ftl, &on("inspect"), |ftl| {
                ftl.inspect(&mut Blind);
                Ok(())
            })?;
        }
        let lpn = Lpn(rng.below(PAGES));
        counted(ftl, &on("read"), |ftl| ftl.read(lpn, &mut [0; Stamp::BYTES]))?;
        match i % 97 {
            3 => {
                let count = rng.below(700).min(PAGES - lpn.0) / (1 + i % 20);
                counted(ftl, &on("trim"), |ftl| ftl.trim(lpn, count))?;
            }
            20 => counted(ftl, &on("flush"), |ftl| ftl.flush())?,
            40 | 41 => counted(ftl, &on("idle"), |ftl| ftl.idle().map(drop))?,
            60 if i % 7 == 0 => counted(ftl, &on("power_failing"), |ftl| ftl.power_failing())?,
            _ => {}
        }
    }
    Ok(())
}

/// That what a row says it has was at work.
fn reached(composition: &Composition, counts: &Counts) {
    let Composition { entry, config, what } = composition;
    let programs = |purpose| assert!(counts.of(purpose).programs > 0, "{what}: no program for {purpose:?}");
    programs(Purpose::Gc);
    assert!(counts.of(Purpose::Gc).erases > 100, "{what}: {:?}", counts.of(Purpose::Gc));
    if entry.info.honours(Setting::CacheEntries) {
        programs(Purpose::Translation);
        assert!(counts.of(Purpose::TranslationGc).erases > 0, "{what}");
    }
    match config.validity.or(entry.info.validity) {
        Some("ram-bitmap") => {}
        Some(_) => {
            programs(Purpose::Validity);
            assert!(counts.of(Purpose::ValidityQuery).reads > 0 && counts.of(Purpose::ValidityGc).erases > 0, "{what}");
        }
        None => programs(Purpose::Checkpoint),
    }
    if config.wear.is_some() {
        programs(Purpose::Wear);
    }
}

/// On a fresh disk, while blocks fail, and on a disk that was mounted.
fn run(composition: &Composition) -> Result<(), String> {
    let Composition { entry, config, what } = composition;
    let mut rng = Rng(7);
    let device = device(entry);
    let mut ftl = (entry.format)(device.flash(), config).map_err(|error| format!("{what}: {error}"))?;
    use_it(&mut *ftl, &device, what, &mut rng, Failing::Nothing)?;
    reached(composition, ftl.flash().counts());
    // The collector of an FTL that is mapped by page may allocate when it meets a page that cannot
    // be read.
    let failing = if entry.info.validity.is_some() { Failing::Erases } else { Failing::All };
    let bad = |ftl: &dyn Ftl<AnyBytes>| (0..BLOCKS).filter(|block| ftl.flash().nand().is_bad(BlockId(*block))).count();
    use_it(&mut *ftl, &device, &format!("{what}, while blocks fail"), &mut rng, failing)?;
    assert!(bad(&*ftl) > 2, "{what}: {} blocks went bad", bad(&*ftl));
    let own_store = config.validity.is_none_or(|store| Some(store) == entry.info.validity);
    let Some(mount) = entry.mount.filter(|_| own_store || entry.info.name == "page") else { return Ok(()) };
    ftl.power_failing().map_err(|error| format!("{what}: {error}"))?;
    device.uncounted(|flash| flash.plan_mut().failing_blocks.clear());
    let (mut ftl, _) = mount(ftl.into_flash(), config).map_err(|error| format!("{what}: {error}"))?;
    use_it(&mut *ftl, &device, &format!("{what}, mounted"), &mut rng, Failing::Nothing)
}

#[test]
fn no_method_allocates() {
    let failures: Vec<String> = compositions().iter().filter_map(|composition| run(composition).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
