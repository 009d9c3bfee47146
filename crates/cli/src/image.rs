//! A disk in a file, or on flash behind Linux MTD: a device with a record of which FTL is on it,
//! with which settings.
//!
//! The record is text in TOML among the bytes that the device keeps for its owner. Whoever opens
//! a disk tells the FTL what it was told when the disk was made.

use crate::backing::Backing;
use crate::banked;
use anyhow::{Context, Result, bail};
use blockdev::disk::{STRIPE_PAGES, striped_pages};
use ftl::config::Maps;
use ftl::ftls::Entry;
use ftl::{
    Config, Flash, Ftl, FtlError, GeckoOptions, GroupOptions, JanusOptions, MountReport, OpCounts, Preset, WearOptions,
};
use ftl::{placement, validity, victim};
use lftl::Engine;
use nand::file::Numbering;
use nand::{Access, FileNand};
use serde::{Deserialize, Serialize};
use std::path::Path;
use table::AnyBytes;

/// Version of the record.
const VERSION: u32 = 1;
/// The program that makes disks.
pub const MADE_BY: &str = concat!("openftl ", env!("CARGO_PKG_VERSION"));

/// Which FTL is on a device, and everything that it is told at a mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    version: u32,
    /// The profile that the device was made from.
    pub device: String,
    /// The program that made it.
    made_by: String,
    /// Pages that lie on one shard before those of the next follow; none for a disk of one shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    stripe_pages: Option<u32>,
    ftl: Settings,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    name: String,
    logical_pages: u32,
    cache_entries: u32,
    protected_percent: u32,
    /// Not there in disks whose cache is one list.
    #[serde(default, skip_serializing_if = "is_zero")]
    cache_ways: u32,
    victim: String,
    placement: String,
    /// Not there in disks that were made before it could be chosen.
    #[serde(default = "default_age_groups", skip_serializing_if = "is_default_age_groups")]
    age_groups: u32,
    lanes: u32,
    /// None for the FTL's own.
    validity: Option<String>,
    gecko: Gecko,
    janus: Janus,
    groups: Option<Groups>,
    wear: Option<Wear>,
    #[serde(default, skip_serializing_if = "is_false")]
    warm: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gecko {
    size_ratio: u32,
    partitions: u32,
    multi_way: bool,
    buffer_pages: u32,
    packed: bool,
    filter_bytes: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    spread_ops: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Janus {
    utilisation_percent: u32,
    defuse_among: u32,
    learn_utilisation: bool,
    page_map_percent: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Groups {
    blocks: u32,
    extra: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wear {
    spread: u32,
    scans: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
const fn is_false(value: &bool) -> bool {
    !*value
}

const fn is_zero(value: &u32) -> bool {
    *value == 0
}

const fn default_age_groups() -> u32 {
    Config::new(0).age_groups
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
const fn is_default_age_groups(groups: &u32) -> bool {
    *groups == default_age_groups()
}

/// The text of the owner's bytes of a device.
pub fn text_of(owner: &[u8]) -> Result<&str> {
    std::str::from_utf8(owner).context("the record of what is on the device is no text")
}

/// Refuses the record of another version.
pub fn version_of(text: &str, wanted: u32) -> Result<()> {
    let table: toml::Table = toml::from_str(text).context("the record of what is on the device is no TOML")?;
    match table.get("version").and_then(toml::Value::as_integer) {
        Some(found) if found != i64::from(wanted) => {
            bail!("the record of what is on the device has version {found}; this program reads version {wanted}")
        }
        _ => Ok(()),
    }
}

impl Record {
    /// The record of a disk that is made from this profile and told what
    /// [`ftl::ftls::Info::config`] gives. Each shard is told the same.
    pub fn new(device: &str, ftl: &str, config: &Config, shards: u32) -> Self {
        // Every field by its name: a new one does not compile before it is recorded.
        let Config {
            logical_pages,
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
            maps: _,
            wear,
            battery: _,
            warm,
        } = *config;
        let GeckoOptions { size_ratio, partitions, multi_way, buffer_pages, packed, filter_bytes, spread_ops } =
            gecko.over(GeckoOptions::PAPER);
        Self {
            version: VERSION,
            device: device.to_owned(),
            made_by: MADE_BY.to_owned(),
            stripe_pages: (shards > 1).then_some(STRIPE_PAGES),
            ftl: Settings {
                name: ftl.to_owned(),
                logical_pages,
                cache_entries,
                protected_percent,
                cache_ways,
                victim: victim.to_owned(),
                placement: placement.unwrap_or(Preset::PAPER.placement).to_owned(),
                age_groups,
                lanes,
                validity: validity.map(str::to_owned),
                gecko: Gecko { size_ratio, partitions, multi_way, buffer_pages, packed, filter_bytes, spread_ops },
                janus: Janus { utilisation_percent, defuse_among, learn_utilisation, page_map_percent },
                groups: groups.map(|GroupOptions { blocks, extra }| Groups { blocks, extra }),
                wear: wear.map(|WearOptions { spread, scans }| Wear { spread, scans }),
                warm: warm.unwrap_or_default(),
            },
        }
    }

    /// The text that is kept.
    pub fn to_text(&self) -> Result<String> {
        toml::to_string(self).context("the settings cannot be written as TOML")
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let text = text_of(bytes)?;
        version_of(text, VERSION)?;
        toml::from_str(text).context("the record of what is on the device cannot be understood")
    }

    /// Refuses a record that does not fit the number of devices on which it was found.
    fn check_shards(&self, shards: usize) -> Result<()> {
        match (shards, self.stripe_pages) {
            (1, None) => Ok(()),
            (1, Some(_)) => bail!("the record tells of several shards, and there is one device"),
            (_, Some(STRIPE_PAGES)) => Ok(()),
            (_, Some(pages)) => {
                bail!("the disk has stripes of {pages} pages over its shards; this program has {STRIPE_PAGES}")
            }
            (_, None) => bail!("there are {shards} devices, and their record tells of one"),
        }
    }

    /// What the FTL is told.
    fn config(&self) -> Result<Config> {
        let ftl = &self.ftl;
        let unknown =
            |what: &str, name: &str| anyhow::anyhow!("this program has no {what} `{name}`, which the disk needs");
        let victim = victim::find(&ftl.victim).ok_or_else(|| unknown("victim policy", &ftl.victim))?;
        let placement = placement::find(&ftl.placement).ok_or_else(|| unknown("placement policy", &ftl.placement))?;
        let store = |name: &String| validity::find(name).ok_or_else(|| unknown("page-validity store", name));
        let Gecko { size_ratio, partitions, multi_way, buffer_pages, packed, filter_bytes, spread_ops } = ftl.gecko;
        let Janus { utilisation_percent, defuse_among, learn_utilisation, page_map_percent } = ftl.janus;
        Ok(Config {
            cache_entries: ftl.cache_entries,
            protected_percent: ftl.protected_percent,
            cache_ways: ftl.cache_ways,
            victim: victim.name,
            placement: Some(placement.name),
            age_groups: ftl.age_groups,
            warm: Some(ftl.warm),
            lanes: ftl.lanes,
            validity: ftl.validity.as_ref().map(store).transpose()?.map(|entry| entry.name),
            gecko: GeckoOptions { size_ratio, partitions, multi_way, buffer_pages, packed, filter_bytes, spread_ops }
                .into(),
            janus: JanusOptions { utilisation_percent, defuse_among, learn_utilisation, page_map_percent },
            groups: ftl.groups.as_ref().map(|groups| GroupOptions { blocks: groups.blocks, extra: groups.extra }),
            wear: ftl.wear.as_ref().map(|wear| WearOptions { spread: wear.spread, scans: wear.scans }),
            maps: Maps::InFlash,
            ..Config::new(ftl.logical_pages)
        })
    }
}

/// A disk, not mounted yet.
pub struct Image {
    /// The devices, one for each shard.
    pub nands: Vec<Backing>,
    /// The FTL that is on it.
    pub entry: Entry<AnyBytes>,
    /// What the FTL is told.
    pub config: Config,
    /// What the device says of it.
    pub record: Record,
    /// A mount, which may write, leaves what is stored as it is, or may change it.
    pub mountable: bool,
}

/// A disk of an FTL of the table, or of the engine of many threads.
pub enum Opened {
    Table(Box<Image>),
    Banked(banked::Image),
}

/// A mounted disk.
pub enum Mounted {
    Table(Vec<Disk>),
    Banked(Box<Engine>),
}

impl Opened {
    /// The devices.
    pub fn nands(&mut self) -> &mut [Backing] {
        match self {
            Self::Table(image) => &mut image.nands,
            Self::Banked(image) => &mut image.nands,
        }
    }

    /// Pages of the disk.
    pub fn pages(&self) -> u64 {
        match self {
            Self::Table(image) => image.pages(),
            Self::Banked(image) => image.pages().into(),
        }
    }

    /// The name of its FTL.
    pub const fn ftl(&self) -> &'static str {
        match self {
            Self::Table(image) => image.entry.info.name,
            Self::Banked(_) => banked::NAME,
        }
    }

    /// Mounts the disk; whatever power loss left is put in order.
    pub fn mount(self) -> Result<(Mounted, MountReport)> {
        match self {
            Self::Table(image) => image.mount().map(|(disks, report)| (Mounted::Table(disks), report)),
            Self::Banked(image) => {
                image.mount_to_read().map(|(engine, report)| (Mounted::Banked(Box::new(engine)), report))
            }
        }
    }
}

/// Opens a disk in a file, or on flash behind Linux MTD, without mounting it.
///
/// Flash cannot be written over in memory: with [`Access::Overlay`] it is opened for reading, and
/// is not mountable.
pub fn open(path: &Path, access: Access) -> Result<Opened> {
    #[cfg(target_os = "linux")]
    if crate::flash::is_one(path) {
        return crate::flash::open(path, access).map(|image| Opened::Table(Box::new(image)));
    }
    let opened = FileNand::open_all(path, access).map_err(anyhow::Error::from).and_then(|nands| {
        // All of them have the same.
        let owner = nands.first().map(|nand| nand.owner().to_vec()).unwrap_or_default();
        let joint = nands.iter().any(|nand| nand.numbering() == Numbering::Joint);
        let nands = nands.into_iter().map(Backing::from).collect();
        if banked::is_one(&owner) {
            return banked::Image::of_devices(nands, &owner).map(Opened::Banked);
        }
        if joint {
            bail!("the devices number their operations together, and the record tells of no disk of {}", banked::NAME);
        }
        of_devices(nands, &owner, true).map(|image| Opened::Table(Box::new(image)))
    });
    opened.with_context(|| format!("cannot open {}", path.display()))
}

/// The disk on devices, of which the owner's bytes say what it is.
pub fn of_devices(nands: Vec<Backing>, owner: &[u8], mountable: bool) -> Result<Image> {
    let record = Record::from_bytes(owner)?;
    record.check_shards(nands.len())?;
    let config = record.config()?;
    let name = &record.ftl.name;
    let Some(entry) = table::find::<AnyBytes>(name) else {
        bail!("this program has no FTL `{name}`, which the disk needs")
    };
    Ok(Image { nands, entry, config, record, mountable })
}

/// An FTL over a device that keeps every byte.
pub type Disk = Box<dyn Ftl<AnyBytes>>;

impl Image {
    /// Devices that the disk is striped over, each with an FTL.
    pub fn shards(&self) -> u32 {
        self.nands.len() as u32
    }

    /// Pages of the disk.
    pub fn pages(&self) -> u64 {
        striped_pages(self.shards(), self.config.logical_pages)
    }

    /// Mounts the FTL of every shard; whatever power loss left is put in order. The report is of
    /// all of them together.
    pub fn mount(self) -> Result<(Vec<Disk>, MountReport)> {
        let name = self.entry.info.name;
        if !self.mountable {
            bail!("a mount may write, and flash is only read here");
        }
        let Some(mount) = self.entry.mount else { bail!("{name} cannot be mounted: {}", self.entry.info.promise()) };
        let shards = self.nands.len();
        let (mut disks, mut all) = (Vec::new(), MountReport::default());
        for (shard, nand) in self.nands.into_iter().enumerate() {
            let mounted = mount(Flash::new(Box::new(nand)), &self.config);
            let (disk, report) = mounted.map_err(|error| match shards {
                1 => unmountable(name, error),
                _ => unmountable(name, error).context(format!("shard {shard}")),
            })?;
            disks.push(disk);
            add(&mut all, report);
        }
        Ok((disks, all))
    }
}

/// Adds the report of another shard.
fn add(all: &mut MountReport, more: MountReport) {
    for step in more.steps {
        match all.steps.iter_mut().find(|other| other.name == step.name) {
            Some(other) => other.ops = sum(other.ops, step.ops),
            None => all.steps.push(step),
        }
    }
    all.unreadable_pages += more.unreadable_pages;
    all.rebuilt_entries += more.rebuilt_entries;
    all.read_only = all.read_only.or(more.read_only);
}

/// Operations of both.
pub fn sum(a: OpCounts, b: OpCounts) -> OpCounts {
    OpCounts {
        reads: a.reads + b.reads,
        spare_reads: a.spare_reads + b.spare_reads,
        programs: a.programs + b.programs,
        erases: a.erases + b.erases,
        flag_programs: a.flag_programs + b.flag_programs,
    }
}

fn unmountable(ftl: &str, error: FtlError) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("{ftl} cannot mount the disk"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_survives_its_record() {
        let config = Config {
            cache_entries: 77,
            protected_percent: 80,
            cache_ways: 8,
            victim: "fifo",
            placement: Some("single"),
            age_groups: 5,
            warm: Some(true),
            lanes: 3,
            validity: Some("gecko"),
            gecko: GeckoOptions {
                size_ratio: 4,
                partitions: 8,
                multi_way: false,
                buffer_pages: 2,
                packed: true,
                filter_bytes: 4096,
                spread_ops: 3,
            }
            .into(),
            janus: JanusOptions {
                utilisation_percent: 60,
                defuse_among: 16,
                learn_utilisation: true,
                page_map_percent: 25,
            },
            groups: Some(GroupOptions { blocks: 8, extra: 4 }),
            wear: Some(WearOptions { spread: 9, scans: 2 }),
            ..Config::new(100_000)
        };
        for (config, shards) in [(config, 1), (Config::new(5), 1), (Config::new(5), 4)] {
            let record = Record::new("demo", "gecko", &config, shards);
            let again = Record::from_bytes(record.to_text().unwrap().as_bytes()).unwrap();
            assert_eq!(again, record);
            assert_eq!(again.config().unwrap(), config.or(&Preset::PAPER));
        }
    }

    #[test]
    fn a_record_says_whether_there_are_shards_and_how_long_their_stripes_are() {
        let record = |shards| Record::new("demo", "gecko", &Config::new(5), shards);
        assert!(!record(1).to_text().unwrap().contains("stripe"), "older programs read disks of one shard");
        let said = |record: &Record, found| record.check_shards(found).map_err(|error| error.to_string());
        assert_eq!((said(&record(1), 1), said(&record(4), 4)), (Ok(()), Ok(())));
        assert!(said(&record(1), 4).unwrap_err().contains("4 devices"));
        assert!(said(&record(4), 1).unwrap_err().contains("several shards"));
        let other = record(4).to_text().unwrap().replace("stripe_pages = 16", "stripe_pages = 8");
        let other = Record::from_bytes(other.as_bytes()).unwrap();
        assert!(said(&other, 4).unwrap_err().contains("stripes of 8 pages"));
    }

    #[test]
    fn a_record_that_is_not_ours_is_refused_by_what_it_says() {
        let text = Record::new("demo", "gecko", &Config::new(5), 1).to_text().unwrap();
        let said = |text: String| {
            let error = Record::from_bytes(text.as_bytes()).and_then(|record| record.config().map(|_| ())).unwrap_err();
            format!("{error:#}")
        };
        assert!(said(text.replace("version = 1", "version = 9")).contains("has version 9"));
        assert!(said(text.replace("lanes", "lames")).contains("lames"));
        assert!(said(text.replace("greedy", "grey")).contains("no victim policy `grey`"));
        assert!(said(text.replace("lanes = 1", "")).contains("lanes"));
        assert!(said("= 3".to_owned()).contains("no TOML"));
        assert!(format!("{:#}", Record::from_bytes(&[0xFF]).unwrap_err()).contains("no text"));
    }
}
