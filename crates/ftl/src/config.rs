//! What an FTL is told when it is made.

use crate::contract::FtlError;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// How Logarithmic Gecko is tuned (GeckoFTL, sections 3 and 5, Appendix A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeckoOptions {
    /// T: how many runs' worth of pages make a level, at least 2.
    pub size_ratio: u32,
    /// S: sub-entries a block's bitmap is split into; 0 takes the paper's B / 32.
    pub partitions: u32,
    /// Merge all levels that a flush will cascade through at once, instead of two at a time.
    pub multi_way: bool,
    /// Pages of entries, unpacked, that the buffer in RAM holds; 1 in the paper.
    pub buffer_pages: u32,
    /// Write each entry as short as what it says, instead of a key and a bitmap each. Fixed when a
    /// disk is made.
    pub packed: bool,
    /// RAM for a filter that spares queries the pages of shorter runs, bytes; 0 for none, as in the
    /// paper.
    pub filter_bytes: u32,
    /// Pages that a merge reads and programs for each entry that the buffer takes, at least: no
    /// report waits for more of it. 0 does each merge at once, as in the paper.
    pub spread_ops: u32,
}

impl GeckoOptions {
    /// The paper's preset: T = 2, S = B / key bits, multi-way merging; and nothing beyond it.
    pub const PAPER: Self = Self {
        size_ratio: 2,
        partitions: 0,
        multi_way: true,
        buffer_pages: 1,
        packed: false,
        filter_bytes: 0,
        spread_ops: 0,
    };
}

impl Default for GeckoOptions {
    fn default() -> Self {
        Self::PAPER
    }
}

/// What is asked of Logarithmic Gecko: each field of [`GeckoOptions`], `None` for the FTL's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeckoAsked {
    /// [`GeckoOptions::size_ratio`].
    pub size_ratio: Option<u32>,
    /// [`GeckoOptions::partitions`].
    pub partitions: Option<u32>,
    /// [`GeckoOptions::multi_way`].
    pub multi_way: Option<bool>,
    /// [`GeckoOptions::buffer_pages`].
    pub buffer_pages: Option<u32>,
    /// [`GeckoOptions::packed`].
    pub packed: Option<bool>,
    /// [`GeckoOptions::filter_bytes`].
    pub filter_bytes: Option<u32>,
    /// [`GeckoOptions::spread_ops`].
    pub spread_ops: Option<u32>,
}

impl GeckoAsked {
    /// Nothing: all is the FTL's own.
    pub const NOTHING: Self = Self {
        size_ratio: None,
        partitions: None,
        multi_way: None,
        buffer_pages: None,
        packed: None,
        filter_bytes: None,
        spread_ops: None,
    };

    /// What is asked for, on top of `own`.
    #[must_use]
    pub fn over(self, own: GeckoOptions) -> GeckoOptions {
        GeckoOptions {
            size_ratio: self.size_ratio.unwrap_or(own.size_ratio),
            partitions: self.partitions.unwrap_or(own.partitions),
            multi_way: self.multi_way.unwrap_or(own.multi_way),
            buffer_pages: self.buffer_pages.unwrap_or(own.buffer_pages),
            packed: self.packed.unwrap_or(own.packed),
            filter_bytes: self.filter_bytes.unwrap_or(own.filter_bytes),
            spread_ops: self.spread_ops.unwrap_or(own.spread_ops),
        }
    }
}

impl From<GeckoOptions> for GeckoAsked {
    fn from(options: GeckoOptions) -> Self {
        let GeckoOptions { size_ratio, partitions, multi_way, buffer_pages, packed, filter_bytes, spread_ops } =
            options;
        Self {
            size_ratio: Some(size_ratio),
            partitions: Some(partitions),
            multi_way: Some(multi_way),
            buffer_pages: Some(buffer_pages),
            packed: Some(packed),
            filter_bytes: Some(filter_bytes),
            spread_ops: Some(spread_ops),
        }
    }
}

/// What an FTL has where nothing is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// [`Config::placement`].
    pub placement: &'static str,
    /// [`Config::gecko`].
    pub gecko: GeckoOptions,
    /// [`Config::warm`].
    pub warm: bool,
}

impl Preset {
    /// That of the FTLs of papers: host and migrated data apart, and nothing beyond the paper.
    pub const PAPER: Self = Self { placement: "split", gecko: GeckoOptions::PAPER, warm: false };

    /// What differs from that of papers, in words.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        // Every field by its name: a new one does not compile before it is said.
        let Self { placement, gecko, warm } = *self;
        let GeckoOptions { size_ratio, partitions, multi_way, buffer_pages, packed, filter_bytes, spread_ops } = gecko;
        let (paper, of) = (Self::PAPER, GeckoOptions::PAPER);
        let words = [
            (placement != paper.placement, format!("placement {placement}")),
            (size_ratio != of.size_ratio, format!("gecko-t {size_ratio}")),
            (partitions != of.partitions, format!("gecko-s {partitions}")),
            (multi_way != of.multi_way, "gecko-two-way".to_owned()),
            (buffer_pages != of.buffer_pages, format!("gecko-buffer {buffer_pages}")),
            (packed != of.packed, "gecko-packed".to_owned()),
            (filter_bytes != of.filter_bytes, format!("gecko-filter {filter_bytes}")),
            (spread_ops != of.spread_ops, format!("gecko-spread {spread_ops}")),
            (warm != paper.warm, "warm".to_owned()),
        ];
        words.into_iter().filter(|(differs, _)| *differs).map(|(_, word)| word).collect()
    }
}

/// Where the maps of an FTL with log blocks are while power is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maps {
    /// In flash: the disk is found again after power loss.
    InFlash,
    /// In non-volatile memory that is assumed and not simulated, as in the simulators of the
    /// papers. Keeping them costs nothing; the disk cannot be mounted.
    NonVolatile,
}

/// How wear is levelled (GeckoFTL, Appendix D).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WearOptions {
    /// Data at rest moves when its block was erased so many times less than the average.
    pub spread: u32,
    /// Spare areas read for every page programmed: more, if few blocks take most of the writes.
    pub scans: u32,
}

impl Default for WearOptions {
    /// Data moves at 8 erases below the average; one spare area is read for every page programmed,
    /// as in the paper.
    fn default() -> Self {
        Self { spread: 8, scans: 1 }
    }
}

/// How Janus-FTL is tuned (Kwon et al., sections 3 to 6), and how it goes beyond its paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JanusOptions {
    /// u_d: utilisation at which the page-mapped area is held where its size is fixed, percent,
    /// from 1 to 99.
    pub utilisation_percent: u32,
    /// Logical blocks, from the one written least recently on, of which the one cheapest to gather
    /// is defused; 1 is the paper's least recently used, and so is 0. At most half of what is fused
    /// is looked at.
    pub defuse_among: u32,
    /// Learn from victims how full they are, instead of equation 5 alone, and from flash operations
    /// what a write costs at each size; the adaptive FTL then moves towards another minimum.
    pub learn_utilisation: bool,
    /// Logical blocks that the page map has entries for, percent of all, from 1; the rest is always
    /// mapped by block. 100 is the paper's page map of everything. Smaller is less RAM.
    pub page_map_percent: u32,
}

impl JanusOptions {
    /// The paper's preset: 75% utilisation where that is fixed; and nothing beyond it.
    pub const PAPER: Self =
        Self { utilisation_percent: 75, defuse_among: 1, learn_utilisation: false, page_map_percent: 100 };
}

impl Default for JanusOptions {
    fn default() -> Self {
        Self::PAPER
    }
}

/// How logical blocks share over-provisioned blocks, for the FTLs that group neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupOptions {
    /// N: neighbouring logical blocks of a group, at least 1.
    pub blocks: u32,
    /// K: blocks that a group may have beyond one for each of its logical blocks, at least 1.
    pub extra: u32,
}

impl GroupOptions {
    /// Itself, if an FTL can work with it.
    pub(crate) fn checked(self, ftl: &'static str) -> Result<Self, FtlError> {
        let Self { blocks, extra } = self;
        if blocks > 0 && extra > 0 {
            return Ok(self);
        }
        let reason = format!("groups of {blocks} logical blocks cannot share {extra} more; ask for at least 1 of each");
        Err(FtlError::Unsupported { ftl, reason })
    }
}

/// A part of [`Config`] that an FTL honours or not; its row in the table says which
/// ([`crate::ftls::Info::honours`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// [`Config::cache_entries`].
    CacheEntries,
    /// [`Config::protected_percent`].
    SegmentedLru,
    /// [`Config::cache_ways`].
    CacheWays,
    /// [`Config::victim`].
    Victim,
    /// [`Config::placement`].
    Placement,
    /// [`Config::age_groups`]: a setting of a placement policy, and so of every FTL that places
    /// pages by it.
    AgeGroups,
    /// [`Config::lanes`].
    Lanes,
    /// [`Config::validity`].
    Validity,
    /// [`Config::gecko`]: a setting of a page-validity store, and so of every FTL over that store.
    Gecko,
    /// [`JanusOptions::utilisation_percent`].
    JanusUtilisation,
    /// [`JanusOptions::defuse_among`].
    JanusDefuse,
    /// [`JanusOptions::learn_utilisation`].
    JanusLearn,
    /// [`JanusOptions::page_map_percent`].
    JanusBlockMap,
    /// [`Config::groups`].
    Groups,
    /// [`Config::maps`].
    Maps,
    /// [`Config::wear`].
    Wear,
    /// [`Config::battery`].
    Battery,
    /// [`Config::warm`].
    Warm,
}

impl Setting {
    /// Every setting, in the order of reports.
    pub const ALL: [Self; 18] = [
        Self::CacheEntries,
        Self::SegmentedLru,
        Self::CacheWays,
        Self::Victim,
        Self::Placement,
        Self::AgeGroups,
        Self::Lanes,
        Self::Validity,
        Self::Gecko,
        Self::JanusUtilisation,
        Self::JanusDefuse,
        Self::JanusLearn,
        Self::JanusBlockMap,
        Self::Groups,
        Self::Maps,
        Self::Wear,
        Self::Battery,
        Self::Warm,
    ];

    /// Its name in reports; does not change.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CacheEntries => "cache",
            Self::SegmentedLru => "segmented-lru",
            Self::CacheWays => "cache-ways",
            Self::Victim => "victim",
            Self::Placement => "placement",
            Self::AgeGroups => "age-groups",
            Self::Lanes => "lanes",
            Self::Validity => "validity",
            Self::Gecko => "gecko",
            Self::JanusUtilisation => "janus-utilisation",
            Self::JanusDefuse => "janus-defuse",
            Self::JanusLearn => "janus-learn",
            Self::JanusBlockMap => "janus-block-map",
            Self::Groups => "groups",
            Self::Maps => "maps",
            Self::Wear => "wear",
            Self::Battery => "battery",
            Self::Warm => "warm",
        }
    }

    /// Sets it in `to` as it is in `from`.
    pub const fn copy(self, from: &Config, to: &mut Config) {
        // Every field by its name: a new one does not compile before it belongs to a setting.
        let Config {
            logical_pages: _,
            cache_entries,
            protected_percent,
            cache_ways,
            victim,
            placement,
            age_groups,
            lanes,
            validity,
            gecko,
            janus: JanusOptions { utilisation_percent, defuse_among, learn_utilisation, page_map_percent },
            groups,
            maps,
            wear,
            battery,
            warm,
        } = *from;
        match self {
            Self::CacheEntries => to.cache_entries = cache_entries,
            Self::SegmentedLru => to.protected_percent = protected_percent,
            Self::CacheWays => to.cache_ways = cache_ways,
            Self::Victim => to.victim = victim,
            Self::Placement => to.placement = placement,
            Self::AgeGroups => to.age_groups = age_groups,
            Self::Lanes => to.lanes = lanes,
            Self::Validity => to.validity = validity,
            Self::Gecko => to.gecko = gecko,
            Self::JanusUtilisation => to.janus.utilisation_percent = utilisation_percent,
            Self::JanusDefuse => to.janus.defuse_among = defuse_among,
            Self::JanusLearn => to.janus.learn_utilisation = learn_utilisation,
            Self::JanusBlockMap => to.janus.page_map_percent = page_map_percent,
            Self::Groups => to.groups = groups,
            Self::Maps => to.maps = maps,
            Self::Wear => to.wear = wear,
            Self::Battery => to.battery = battery,
            Self::Warm => to.warm = warm,
        }
    }
}

/// What an FTL is told when it is made. A part ignores what does not concern it; which settings
/// concern an FTL its row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Pages that the host sees.
    pub logical_pages: u32,
    /// C: mapping entries that a cached translation table holds.
    pub cache_entries: u32,
    /// Percent of them that a segmented LRU order protects (DFTL; 80 is usual), up to 100; 0 for
    /// plain LRU order, which GeckoFTL's paper gives all that it compares.
    pub protected_percent: u32,
    /// Ways of the sets that the cache of mapping entries is divided into, from 2 to 16; 0 for one
    /// list in LRU order. Sets have no protected segment.
    pub cache_ways: u32,
    /// Victim policy, by its name in [`crate::victim::table`].
    pub victim: &'static str,
    /// Placement policy, by its name in [`crate::placement::table`]; `None` for the FTL's own.
    pub placement: Option<&'static str>,
    /// Groups that ages of pages are parted into, from 2 to 8.
    pub age_groups: u32,
    /// Blocks that each write stream fills at once, on different dies; or one in each plane of each
    /// die ([`crate::victim::Banks::fit`]). Streams of metadata have as many if the device has
    /// blocks enough to spare.
    pub lanes: u32,
    /// Page-validity store, by its name in [`crate::validity::table`]; `None` for the FTL's own.
    pub validity: Option<&'static str>,
    /// How Logarithmic Gecko is tuned.
    pub gecko: GeckoAsked,
    /// How Janus-FTL is tuned.
    pub janus: JanusOptions,
    /// How logical blocks are grouped; `None` for the FTL's own way.
    pub groups: Option<GroupOptions>,
    /// Where the maps of an FTL with log blocks are.
    pub maps: Maps,
    /// How wear is levelled; not at all if `None`.
    pub wear: Option<WearOptions>,
    /// Whether there is a battery, for FTLs whose design assumes one
    /// ([`crate::ftls::Durability::Battery`]).
    pub battery: bool,
    /// Translation pages that are used often say so when they are programmed, and a mount caches
    /// their entries; `None` for the FTL's own way.
    pub warm: Option<bool>,
}

impl Config {
    /// The defaults for a logical device of so many pages: one lane, greedy, the FTL's own preset.
    ///
    /// The cache holds 1.43 entries for each translation page of 1024, the ratio of GeckoFTL's 2
    /// TiB evaluation (C = 2^19, 367,002 translation pages), and at least 64.
    #[must_use]
    pub const fn new(logical_pages: u32) -> Self {
        let entries = logical_pages / 716;
        Self {
            logical_pages,
            cache_entries: if entries < 64 { 64 } else { entries },
            protected_percent: 0,
            cache_ways: 0,
            victim: "greedy",
            placement: None,
            age_groups: 3,
            lanes: 1,
            validity: None,
            gecko: GeckoAsked::NOTHING,
            janus: JanusOptions::PAPER,
            groups: None,
            maps: Maps::InFlash,
            wear: None,
            battery: true,
            warm: None,
        }
    }

    /// How Logarithmic Gecko is tuned: the paper's way where nothing is asked for.
    #[must_use]
    pub fn gecko(&self) -> GeckoOptions {
        self.gecko.over(GeckoOptions::PAPER)
    }

    /// The same, with what is not asked for as the preset has it.
    #[must_use]
    pub fn or(&self, preset: &Preset) -> Self {
        Self {
            placement: self.placement.or(Some(preset.placement)),
            gecko: self.gecko.over(preset.gecko).into(),
            warm: self.warm.or(Some(preset.warm)),
            ..*self
        }
    }
}
