//! What a row of the table says of settings is so: a setting that an FTL honours makes a
//! difference, any other makes none.

#![allow(clippy::unwrap_used)]

use ftl::{
    Config, Counts, Flash, FtlError, GeckoOptions, GroupOptions, JanusOptions, Maps, MountReport, Preset, RamReport,
    Setting, WearOptions, ftls, placement, validity, victim,
};
use nand::geometry::Dimensions;
use nand::{Capabilities, Geometry, Lpn, ProgramOrder, SimNand, Stamp};
use openftl_ftl as ftl;

const BLOCKS: u32 = 480;
const PAGES_PER_BLOCK: u32 = 32;
const LOGICAL: u32 = 11_700;

fn device() -> Flash<SimNand> {
    let geometry = Geometry::new(Dimensions {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: BLOCKS,
        pages_per_block: PAGES_PER_BLOCK,
        page_bytes: 512,
        spare_bytes: 32,
    });
    let capabilities = Capabilities { program_order: ProgramOrder::Free, spare_reprograms: 2, ..Capabilities::MODERN };
    Flash::new(SimNand::new(geometry.unwrap(), capabilities))
}

pub fn plain() -> Config {
    Config { cache_entries: 64, ..Config::new(LOGICAL) }
}

/// Other values of a setting than [`plain`] has.
pub fn others(setting: Setting) -> Vec<Config> {
    let plain = plain();
    let gecko = |change: fn(&mut GeckoOptions)| {
        let mut gecko = GeckoOptions::PAPER;
        change(&mut gecko);
        Config { gecko: gecko.into(), ..plain }
    };
    let janus = |change: fn(&mut JanusOptions)| {
        let mut config = plain;
        change(&mut config.janus);
        config
    };
    match setting {
        Setting::CacheEntries => vec![Config { cache_entries: 20, ..plain }, Config { cache_entries: 200, ..plain }],
        Setting::SegmentedLru => vec![Config { protected_percent: 80, ..plain }],
        Setting::CacheWays => [2, 5, 16].map(|cache_ways| Config { cache_ways, ..plain }).to_vec(),
        Setting::Victim => {
            let others = victim::table().iter().map(|entry| entry.name).filter(|name| *name != plain.victim);
            others.map(|victim| Config { victim, ..plain }).collect()
        }
        Setting::Placement => {
            // Without a future there is nothing to run.
            let told = placement::table().iter().filter(|entry| !entry.knows_future).map(|entry| entry.name);
            let (paper, others): (Vec<_>, Vec<_>) = told.partition(|name| *name == Preset::PAPER.placement);
            let all = others.into_iter().chain(paper);
            all.map(|placement| Config { placement: Some(placement), ..plain }).collect()
        }
        Setting::AgeGroups => vec![Config { age_groups: 2, ..plain }, Config { age_groups: 5, ..plain }],
        Setting::Lanes => vec![Config { lanes: 2, ..plain }],
        Setting::Validity => {
            validity::table().iter().map(|store| Config { validity: Some(store.name), ..plain }).collect()
        }
        Setting::Gecko => vec![
            gecko(|gecko| gecko.size_ratio = 4),
            gecko(|gecko| gecko.partitions = 2),
            gecko(|gecko| gecko.multi_way = false),
            gecko(|gecko| gecko.buffer_pages = 3),
            gecko(|gecko| gecko.packed = true),
            gecko(|gecko| gecko.filter_bytes = 4096),
            gecko(|gecko| gecko.spread_ops = 1),
        ],
        Setting::JanusUtilisation => vec![janus(|janus| janus.utilisation_percent = 50)],
        Setting::JanusDefuse => vec![janus(|janus| janus.defuse_among = 8)],
        Setting::JanusLearn => vec![janus(|janus| janus.learn_utilisation = true)],
        Setting::JanusBlockMap => vec![janus(|janus| janus.page_map_percent = 30)],
        Setting::Groups => {
            [(1, 1), (5, 2), (30, 9)].map(|(blocks, extra)| grouped(GroupOptions { blocks, extra })).to_vec()
        }
        Setting::Maps => vec![Config { maps: Maps::NonVolatile, ..plain }],
        Setting::Wear => vec![Config { wear: Some(WearOptions { spread: 1, scans: 4 }), ..plain }],
        Setting::Battery => vec![Config { battery: false, ..plain }],
        Setting::Warm => [true, false].map(|warm| Config { warm: Some(warm), ..plain }).to_vec(),
    }
}

fn grouped(groups: GroupOptions) -> Config {
    Config { groups: Some(groups), ..plain() }
}

/// What a disk did and holds, and what its mount did.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub counts: Counts,
    pub mount: Option<Result<(Counts, MountReport), FtlError>>,
    pub ram: RamReport,
}

/// Writes of which most go to a sixth of the disk, in runs and single, with reads, trims, flushes
/// and idle times; then power goes and comes back.
pub fn run(entry: &ftls::Entry<SimNand>, config: &Config) -> Result<Outcome, FtlError> {
    let mut ftl = (entry.format)(device(), config)?;
    (0..LOGICAL).for_each(|lpn| ftl.write(Lpn(lpn), &Stamp { lpn: Lpn(lpn), version: 1 }).unwrap());
    let mut state = 17_u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    for step in 0..9000_u32 {
        let everywhere = random(4) == 0;
        let lpn = random(if everywhere { LOGICAL } else { LOGICAL / 6 });
        let pages = if step % 11 == 0 { PAGES_PER_BLOCK } else { 1 }.min(LOGICAL - lpn);
        let version = (step % 60_000) as u16 + 2;
        (lpn..lpn + pages).map(Lpn).for_each(|lpn| ftl.write(lpn, &Stamp { lpn, version }).unwrap());
        ftl.read(Lpn(random(LOGICAL)), &mut Stamp::UNWRITTEN.clone()).unwrap();
        match step % 400 {
            100 => ftl.trim(Lpn(lpn), pages).unwrap(),
            200 => ftl.flush().unwrap(),
            300 => drop(ftl.idle().unwrap()),
            _ => {}
        }
    }
    ftl.power_failing().unwrap();
    let (counts, ram) = (*ftl.flash().counts(), ftl.ram());
    let flash = Flash::new(ftl.into_flash().into_nand());
    let mount = entry.mount.map(|mount| mount(flash, config).map(|(ftl, report)| (*ftl.flash().counts(), report)));
    Ok(Outcome { counts, mount, ram })
}

/// A setting, given another value, makes a difference exactly if it is honoured over a
/// page-validity store of that name or the FTL's own; it may be refused if not.
fn check(entry: &ftls::Entry<SimNand>, store: Option<&'static str>, settings: &[Setting]) {
    let info = entry.info;
    let before = run(entry, &Config { validity: store, ..plain() }).unwrap();
    for &setting in settings {
        for mut config in others(setting) {
            if config.or(&info.preset) == plain().or(&info.preset) {
                continue;
            }
            match setting {
                Setting::Validity if config.validity == info.validity => continue,
                Setting::Validity => {}
                _ => config.validity = store,
            }
            let (honours, what) = (info.honours_over(setting, store), format!("{} with {config:?}", info.name));
            match run(entry, &config) {
                Ok(after) => assert_eq!(after != before, honours, "{what}"),
                Err(error) => assert!(!honours && matches!(error, FtlError::Unsupported { .. }), "{what}: {error}"),
            }
        }
    }
}

#[test]
fn settings_that_are_honoured_make_a_difference_and_no_others() {
    for entry in table::table::<SimNand>() {
        check(&entry, None, &Setting::ALL);
    }
}

#[test]
fn settings_of_a_store_concern_every_ftl_over_it_and_over_no_other() {
    for entry in table::table::<SimNand>().iter().filter(|entry| entry.info.validity.is_some()) {
        for store in validity::table() {
            check(entry, Some(store.name), &[Setting::Gecko]);
        }
    }
}

#[test]
fn an_ftl_is_told_what_it_honours_and_the_default_of_the_rest() {
    for entry in table::table::<SimNand>() {
        let preset = &entry.info.preset;
        let mut asked = plain();
        for setting in Setting::ALL {
            let differs = |config: &Config| config.or(preset) != plain().or(preset);
            setting.copy(&others(setting).into_iter().rfind(differs).unwrap(), &mut asked);
        }
        let told = entry.info.config(&asked);
        for setting in Setting::ALL {
            let (mut with, mut without) = (told, told);
            setting.copy(&asked, &mut with);
            setting.copy(&Config::new(LOGICAL).or(preset), &mut without);
            let honours = entry.info.honours_over(setting, asked.validity)
                || asked.placement.is_some_and(|policy| entry.info.honours_with(setting, policy));
            assert_eq!(told, if honours { with } else { without }, "{}: {}", entry.info.name, setting.name());
            assert_ne!(with, without, "{}", setting.name());
        }
    }
}

#[test]
fn settings_of_a_placement_concern_every_ftl_that_places_by_it() {
    for row in placement::table().iter().filter(|row| !row.settings.is_empty()) {
        for entry in table::table::<SimNand>().iter().filter(|entry| entry.info.honours(Setting::Placement)) {
            let before = run(entry, &Config { placement: Some(row.name), ..plain() }).unwrap();
            for setting in row.settings {
                assert!(entry.info.honours_with(*setting, row.name) && !entry.info.honours_with(*setting, "split"));
                for config in others(*setting) {
                    let after = run(entry, &Config { placement: Some(row.name), ..config }).unwrap();
                    assert_ne!(after, before, "{} with {config:?}", entry.info.name);
                }
            }
        }
    }
}

/// Nobody knows what comes: the disk is there, and cannot be written.
#[test]
fn a_placement_that_knows_the_future_refuses_to_write_without_it() {
    for row in placement::table().iter().filter(|row| row.knows_future) {
        for entry in table::table::<SimNand>().iter().filter(|entry| entry.info.honours(Setting::Placement)) {
            let mut ftl = (entry.format)(device(), &Config { placement: Some(row.name), ..plain() }).unwrap();
            let stamp = Stamp { lpn: Lpn(0), version: 1 };
            assert_eq!(ftl.write(Lpn(0), &stamp), Err(FtlError::NoFuture), "{}", entry.info.name);
            ftl.foresee(placement::Future::of(LOGICAL, [0, 0].into_iter()));
            assert_eq!(ftl.write(Lpn(0), &stamp), Ok(()));
        }
    }
}

#[test]
fn no_two_settings_have_a_name() {
    for (at, setting) in Setting::ALL.iter().enumerate() {
        assert!(Setting::ALL[..at].iter().all(|other| other.name() != setting.name()), "{setting:?}");
    }
}

#[test]
fn what_is_known_without_building_an_ftl_is_what_its_row_says() {
    let table = table::table::<SimNand>();
    assert_eq!(ftls::infos().len(), table.len());
    for (info, entry) in ftls::infos().iter().zip(&table) {
        assert_eq!((info.name, info.summary), (entry.info.name, entry.info.summary));
        assert_eq!(info.is_mountable(), entry.mount.is_some(), "{}", info.name);
    }
}

/// With the counts of cached entries that some keep, and all else that leads to an entry.
#[test]
fn an_entry_in_sets_takes_at_most_twelve_bytes_of_reported_ram() {
    let config = Config { cache_entries: 1 << 14, cache_ways: 16, ..plain() };
    for entry in table::table::<SimNand>().iter().filter(|entry| entry.info.honours(Setting::CacheWays)) {
        let ram = (entry.format)(device(), &config).unwrap().ram();
        let of_cache = ram.iter().filter(|item| ["cmt", "cmt_index"].contains(&item.name));
        let bytes: u64 = of_cache.map(|item| item.bytes).sum();
        assert!((7 << 14..=12 << 14).contains(&bytes), "{}: {bytes} B for {} entries", entry.info.name, 1 << 14);
    }
}

#[test]
fn a_cache_in_sets_is_refused_with_its_reason() {
    for entry in table::table::<SimNand>().iter().filter(|entry| entry.info.honours(Setting::CacheWays)) {
        let (name, honours) = (entry.info.name, entry.info.honours(Setting::SegmentedLru));
        for (cache_ways, protected_percent, why) in [(1, 0, "from 2 to 16 ways"), (4, 50, "no protected segment")] {
            let made = (entry.format)(device(), &Config { cache_ways, protected_percent, ..plain() }).map(drop);
            match made {
                Ok(()) => assert!(protected_percent > 0 && !honours, "{name} takes {cache_ways} ways"),
                Err(FtlError::Unsupported { reason, .. }) => assert!(reason.contains(why), "{name}: {reason}"),
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
}

#[test]
fn a_cache_of_more_entries_than_can_be_linked_is_refused_by_number() {
    for entry in table::table::<SimNand>() {
        if !entry.info.honours(Setting::CacheEntries) {
            continue;
        }
        let config = Config { cache_entries: 0xFF_FFFF, ..plain() };
        let made = (entry.format)(device(), &config).map(drop);
        let name = entry.info.name;
        let Err(FtlError::Unsupported { reason, .. }) = made else { panic!("{name}: {made:?}") };
        assert!(reason.starts_with("a cache of 16777215 entries exceeds 16777214"), "{name}: {reason}");
    }
}
