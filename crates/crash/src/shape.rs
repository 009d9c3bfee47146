//! Small devices to crash on: full within a few hundred writes, each odd in its own way.

use crate::faults::Fault;
use crate::tap::{Tapped, blank};
use crate::{Device, Shared};
use ftl::ftls::Entry;
use ftl::{Config, FtlError, GeckoAsked, GeckoOptions, GroupOptions, JanusOptions, Setting, WearOptions};
use nand::{BlockId, Capabilities, Dimensions, FaultPlan, Geometry, GeometryError, Pairing, ProgramOrder};

/// A device, and what an FTL on it is told. The number of a row is part of replay ids: rows are
/// added at the end.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its name on the command line.
    pub name: &'static str,
    pub(crate) blocks: u32,
    pub(crate) pages_per_block: u32,
    pub(crate) page_bytes: u32,
    pub(crate) channels: u32,
    pub(crate) dies_per_channel: u32,
    /// More than one: each plane is a lane.
    pub(crate) planes_per_die: u32,
    /// Blocks that may go bad without the disk becoming too large for its device.
    pub(crate) spare_blocks: u32,
    pub(crate) cache_entries: u32,
    /// Percent of them that a segmented LRU order protects.
    pub(crate) protected_percent: u32,
    /// Ways of the sets that they are divided into; 0 for one list.
    pub(crate) cache_ways: u32,
    /// The most logical pages: a small disk on a large device leaves recovery more to choose from.
    pub(crate) logical_pages: u32,
    /// The page-validity store, if not the FTL's own. Only what an FTL promises over its own store
    /// holds when a page is worn.
    pub(crate) validity: Option<&'static str>,
    /// How logical blocks are grouped, by FTLs that group them: few, so that there are many groups.
    pub(crate) groups: Option<GroupOptions>,
    /// How Logarithmic Gecko is tuned.
    pub(crate) gecko: GeckoOptions,
    /// How Janus-FTL is tuned.
    pub(crate) janus: JanusOptions,
    /// Pages written at random before the workload: with small sequence numbers recovery looks at
    /// everything.
    pub(crate) age: u32,
    /// Level wear as often as can be.
    pub(crate) level_wear: bool,
    /// Hot translation pages are cached by mounts.
    pub(crate) warm: bool,
    /// The placement and victim policies, if not those of [`Config::new`].
    pub(crate) policies: Option<(&'static str, &'static str)>,
    /// Pages that share a word line, in exploration of that fault.
    pub(crate) pairing: Pairing,
    pub(crate) capabilities: Capabilities,
}

const MODERN: Shape = Shape {
    name: "tiny",
    blocks: 24,
    pages_per_block: 4,
    page_bytes: 512,
    channels: 1,
    dies_per_channel: 1,
    planes_per_die: 1,
    spare_blocks: SPARE_BLOCKS,
    cache_entries: 4,
    protected_percent: 0,
    cache_ways: 0,
    logical_pages: u32::MAX,
    validity: None,
    groups: None,
    gecko: GeckoOptions::PAPER,
    janus: JanusOptions::PAPER,
    age: 0,
    level_wear: false,
    warm: false,
    policies: None,
    pairing: Pairing { bits_per_cell: 2, distance: 1 },
    capabilities: Capabilities { spare_reprograms: 2, ..Capabilities::MODERN },
};

const OLD_SLC: Capabilities =
    Capabilities { program_order: ProgramOrder::Free, spare_reprograms: 8, ..Capabilities::MODERN };

/// Logarithmic Gecko beyond its paper.
const PACKED: GeckoOptions = GeckoOptions { buffer_pages: 2, packed: true, filter_bytes: 64, ..GeckoOptions::PAPER };

/// Merges of Logarithmic Gecko spread over reports.
const SPREAD: GeckoOptions = GeckoOptions { partitions: 4, spread_ops: 1, ..GeckoOptions::PAPER };

/// An entry a page, so that runs are of several levels.
const SPREAD_PARTS: GeckoOptions = GeckoOptions { partitions: 8, ..SPREAD };

const SPREAD_PACKED: GeckoOptions = GeckoOptions { size_ratio: 3, spread_ops: 2, ..PACKED };

/// Janus-FTL beyond its paper.
const BEYOND: JanusOptions =
    JanusOptions { defuse_among: 4, learn_utilisation: true, page_map_percent: 50, ..JanusOptions::PAPER };

/// With an entry a page Logarithmic Gecko's buffer holds some eighty reports: it is flushed because
/// it is full, also in a mount.
const AGED: Shape = Shape {
    blocks: 64,
    pages_per_block: 8,
    gecko: GeckoOptions { partitions: 8, ..GeckoOptions::PAPER },
    age: 1200,
    ..MODERN
};

/// An old device of which several runs of Logarithmic Gecko, or pages of a validity log, are there
/// to be merged.
const RUNS: Shape = Shape {
    blocks: 52,
    pages_per_block: 6,
    cache_entries: 16,
    gecko: GeckoOptions { partitions: 4, ..GeckoOptions::PAPER },
    age: 900,
    ..MODERN
};
use table::AnyBytes;

/// Every shape. A ring of the `n` updates made last is full of whole blocks, of one page more, or
/// of one page less.
pub const SHAPES: &[Shape] = &[
    MODERN,
    Shape { name: "small", blocks: 32, pages_per_block: 8, cache_entries: 9, ..MODERN },
    Shape {
        name: "odd",
        blocks: 40,
        pages_per_block: 7,
        channels: 2,
        logical_pages: 90,
        pairing: Pairing { bits_per_cell: 3, distance: 2 },
        ..MODERN
    },
    Shape { name: "deep", blocks: 30, pages_per_block: 32, cache_entries: 24, logical_pages: 400, ..MODERN },
    Shape { name: "slc", blocks: 40, pages_per_block: 8, logical_pages: 100, capabilities: OLD_SLC, ..MODERN },
    Shape { name: "level", blocks: 32, pages_per_block: 6, level_wear: true, ..MODERN },
    Shape { name: "over-flash-bitmap", blocks: 44, pages_per_block: 8, validity: Some("flash-bitmap"), ..MODERN },
    Shape { name: "over-log", blocks: 44, pages_per_block: 8, validity: Some("log"), ..MODERN },
    Shape { name: "over-gecko", blocks: 44, pages_per_block: 8, validity: Some("gecko"), ..MODERN },
    Shape { name: "packed", blocks: 56, pages_per_block: 8, gecko: PACKED, ..MODERN },
    Shape { name: "wide", blocks: 56, pages_per_block: 8, ..MODERN },
    Shape { name: "beyond-janus", blocks: 40, pages_per_block: 8, logical_pages: 160, janus: BEYOND, ..MODERN },
    Shape {
        name: "grouped",
        blocks: 36,
        pages_per_block: 5,
        groups: Some(GroupOptions { blocks: 3, extra: 2 }),
        ..MODERN
    },
    Shape { name: "aged", cache_entries: 32, logical_pages: 130, ..AGED },
    Shape { name: "aged-short-cache", cache_entries: 3, logical_pages: 260, ..AGED },
    Shape { name: "slc-full", blocks: 28, pages_per_block: 5, capabilities: OLD_SLC, ..MODERN },
    Shape { name: "segmented", blocks: 40, pages_per_block: 8, cache_entries: 9, protected_percent: 60, ..MODERN },
    Shape { name: "leafy", blocks: 72, pages_per_block: 16, cache_entries: 12, logical_pages: 400, ..MODERN },
    Shape { name: "ring-1-block", blocks: 26, cache_entries: 8, logical_pages: 20, ..MODERN },
    Shape { name: "ring-1-block-1-page", blocks: 26, cache_entries: 10, logical_pages: 20, ..MODERN },
    Shape { name: "ring-2-blocks", blocks: 30, cache_entries: 16, logical_pages: 30, ..MODERN },
    Shape { name: "ring-3-blocks", blocks: 34, cache_entries: 120, logical_pages: 40, ..MODERN },
    Shape { name: "ring-few-pages", blocks: 26, cache_entries: 8, logical_pages: 4, ..MODERN },
    Shape { name: "runs", logical_pages: 150, ..RUNS },
    Shape { name: "runs-wide", blocks: 90, pages_per_block: 5, cache_entries: 40, ..RUNS },
    Shape { name: "page-1536", blocks: 33, pages_per_block: 6, page_bytes: 1536, logical_pages: 90, ..MODERN },
    Shape { name: "page-16k", blocks: 26, pages_per_block: 3, page_bytes: 16384, cache_entries: 8, ..MODERN },
    Shape { name: "three-lanes", blocks: 51, pages_per_block: 7, channels: 3, cache_entries: 14, ..MODERN },
    Shape { name: "no-spare", blocks: 27, pages_per_block: 5, spare_blocks: 0, cache_entries: 10, ..MODERN },
    Shape { name: "sepbit", blocks: 60, pages_per_block: 6, policies: Some(("sepbit", "cost-benefit")), ..MODERN },
    Shape {
        name: "dac-level",
        blocks: 80,
        pages_per_block: 5,
        channels: 2,
        policies: Some(("dac", "fifo")),
        level_wear: true,
        ..MODERN
    },
    Shape {
        name: "two-banks",
        blocks: 152,
        pages_per_block: 6,
        channels: 2,
        dies_per_channel: 2,
        cache_entries: 12,
        logical_pages: 120,
        ..MODERN
    },
    Shape { name: "warm", blocks: 44, pages_per_block: 6, cache_entries: 150, warm: true, ..MODERN },
    Shape { name: "warm-short-cache", blocks: 40, pages_per_block: 7, cache_entries: 6, warm: true, ..MODERN },
    Shape { name: "midas", blocks: 64, pages_per_block: 6, age: 1500, policies: Some(("midas", "greedy")), ..MODERN },
    Shape {
        name: "midas-level",
        blocks: 100,
        pages_per_block: 5,
        channels: 2,
        age: 1500,
        policies: Some(("midas", "fifo")),
        level_wear: true,
        ..MODERN
    },
    Shape { name: "spread", logical_pages: 150, gecko: SPREAD, ..RUNS },
    Shape { name: "spread-wide", blocks: 110, pages_per_block: 8, cache_entries: 40, gecko: SPREAD_PARTS, ..RUNS },
    Shape { name: "spread-packed", blocks: 70, pages_per_block: 8, gecko: SPREAD_PACKED, ..AGED },
    Shape {
        name: "over-gecko-spread",
        blocks: 90,
        pages_per_block: 8,
        logical_pages: 220,
        validity: Some("gecko"),
        gecko: SPREAD_PARTS,
        ..MODERN
    },
    Shape { name: "old", blocks: 64, pages_per_block: 6, age: 1500, ..MODERN },
    Shape { name: "old-lanes", blocks: 60, pages_per_block: 7, channels: 3, cache_entries: 14, age: 1500, ..MODERN },
    Shape { name: "old-level", blocks: 48, pages_per_block: 5, age: 1100, level_wear: true, ..MODERN },
    Shape {
        name: "tournament",
        blocks: 140,
        pages_per_block: 5,
        channels: 2,
        age: 900,
        policies: Some(("split", "tournament")),
        ..MODERN
    },
    Shape {
        name: "planes",
        blocks: 160,
        pages_per_block: 6,
        channels: 2,
        planes_per_die: 2,
        cache_entries: 12,
        age: 900,
        ..MODERN
    },
    Shape { name: "sets", blocks: 44, pages_per_block: 6, cache_entries: 12, cache_ways: 4, ..MODERN },
    Shape { name: "sets-of-two", blocks: 64, pages_per_block: 6, cache_entries: 9, cache_ways: 2, age: 900, ..MODERN },
    Shape {
        name: "sets-warm",
        blocks: 60,
        pages_per_block: 8,
        cache_entries: 70,
        cache_ways: 16,
        warm: true,
        age: 900,
        ..MODERN
    },
];

/// The name of the shape that chance draws anew for each workload.
pub const DRAWN: &str = "drawn";

/// Its number: of no row of [`SHAPES`].
pub(crate) const DRAWN_NUMBER: u8 = u8::MAX;

/// Names of every shape.
pub fn shape_names() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().map(|shape| shape.name).chain([DRAWN])
}

/// The shape with this name, and its number.
#[must_use]
pub fn find(name: &str) -> Option<(usize, &'static Shape)> {
    SHAPES.iter().enumerate().find(|(_, shape)| shape.name == name)
}

impl Shape {
    /// The shape of the device.
    ///
    /// # Errors
    /// None for a row of [`SHAPES`].
    pub fn geometry(&self) -> Result<Geometry, GeometryError> {
        Geometry::new(Dimensions {
            channels: self.channels,
            dies_per_channel: self.dies_per_channel,
            planes_per_die: self.planes_per_die,
            blocks: self.blocks,
            pages_per_block: self.pages_per_block,
            page_bytes: self.page_bytes,
            spare_bytes: 32,
        })
    }

    /// A lane for each channel or, of a die of several planes, for each plane.
    const fn lanes(&self) -> u32 {
        match self.planes_per_die {
            1 => self.channels,
            planes => self.channels * self.dies_per_channel * planes,
        }
    }

    pub(crate) fn config(&self, logical_pages: u32) -> Config {
        let wear = self.level_wear.then_some(WearOptions { spread: 1, scans: 4 });
        let config = Config::new(logical_pages);
        let (placement, victim) = self.policies.unzip();
        Config {
            cache_entries: self.cache_entries,
            protected_percent: self.protected_percent,
            cache_ways: self.cache_ways,
            lanes: self.lanes(),
            validity: self.validity,
            groups: self.groups,
            wear,
            gecko: if self.gecko == GeckoOptions::PAPER { GeckoAsked::NOTHING } else { self.gecko.into() },
            janus: self.janus,
            placement,
            victim: victim.unwrap_or(config.victim),
            warm: self.warm.then_some(true),
            ..config
        }
    }

    pub(crate) fn device(&self, plan: FaultPlan) -> Result<Device, GeometryError> {
        Ok(Shared::new(Tapped::new(blank(self.geometry()?, self.capabilities, plan), LIMIT)))
    }

    /// Its name, and what it is if it has no row.
    pub(crate) fn told(&self) -> String {
        if self.name == DRAWN { format!("{self:?}") } else { self.name.into() }
    }

    /// Whether the FTL can be mounted over the page-validity store; why not, if it cannot. Its own
    /// is what the other shapes have.
    fn mounts(&self, entry: &Entry<AnyBytes>) -> Result<(), String> {
        let honours = |setting| entry.info.honours_over(setting, self.validity);
        if self.gecko != GeckoOptions::PAPER && !honours(Setting::Gecko) {
            return Err("it has no Logarithmic Gecko to be tuned".into());
        }
        if self.janus != JanusOptions::PAPER && !honours(Setting::JanusBlockMap) {
            return Err("it has no page-mapped area to be tuned".into());
        }
        if self.protected_percent > 0 && !honours(Setting::SegmentedLru) {
            return Err("it caches no mapping entries in a segmented LRU order".into());
        }
        if self.cache_ways > 0 && !honours(Setting::CacheWays) {
            return Err("it caches no mapping entries in sets".into());
        }
        if self.warm && !honours(Setting::Warm) {
            return Err("its mounts cache no hot translation pages, or always do".into());
        }
        if self.policies.is_some() && !honours(Setting::Placement) {
            return Err("it has streams of its own, where no policy places pages".into());
        }
        let (Some(store), Some(mount)) = (self.validity, entry.mount) else { return Ok(()) };
        if entry.info.validity == self.validity {
            return Err(format!("{store} is its own page-validity store"));
        }
        let device = self.device(FaultPlan::default()).map_err(|e| e.to_string())?;
        match mount(device.flash_of_bytes(), &self.config(1)) {
            Err(error @ FtlError::Unsupported { .. }) => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    /// Those of these faults that the device has blocks for.
    pub(crate) const fn bears(&self, faults: u16) -> u16 {
        if self.spare_blocks == 0 { faults & !Fault::OF_BLOCKS } else { faults }
    }

    /// How large a disk the FTL makes of the device when some blocks are left to go bad; why not,
    /// if it makes none.
    pub(crate) fn logical_pages(&self, entry: &Entry<AnyBytes>) -> Result<u32, String> {
        let make = |logical_pages| {
            let factory_bad = (0..self.spare_blocks).map(BlockId).collect();
            let plan = FaultPlan { factory_bad, ..FaultPlan::default() };
            let device = self.device(plan).map_err(|e| e.to_string())?;
            (entry.format)(device.flash_of_bytes(), &self.config(logical_pages)).map(drop).map_err(|e| e.to_string())
        };
        self.mounts(entry)?;
        let mut fits = (1, self.blocks * self.pages_per_block);
        make(fits.0)?;
        while fits.1 - fits.0 > 1 {
            let middle = u32::midpoint(fits.0, fits.1);
            if make(middle).is_ok() { fits.0 = middle } else { fits.1 = middle }
        }
        Ok(fits.0.min(self.logical_pages))
    }
}

/// Blocks that may go bad on most shapes.
pub(crate) const SPARE_BLOCKS: u32 = 4;

/// Operations, reads included, that one run may do before it counts as one that never ends.
pub(crate) const LIMIT: u64 = 2_000_000;
