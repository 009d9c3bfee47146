//! Options that configure FTLs: what each FTL is told of them, and which of those that were given
//! mean nothing to which FTL.
//!
//! An option that means nothing to any FTL of a run is refused. One that means something to some of
//! them runs, and the report says which FTLs did without.

use crate::args::{Defuse, GeckoArgs, MapsArg, TuningArgs};
use crate::error::{unknown, usage};
use crate::report::NotTaken;
use crate::units::{Groups, bytes};
use anyhow::Result;
use ftl::config::Maps;
use ftl::ftls::Info;
use ftl::victim::Banks;
use ftl::{Config, GeckoAsked, GroupOptions, JanusOptions, Setting, WearOptions, placement, validity};
use nand::Geometry;

/// Bytes of a cached mapping entry, as GeckoFTL counts them: 2^19 entries are 4 MiB.
const CACHE_ENTRY_BYTES: u64 = 8;

/// An option of the command line, the setting that it changes, and whether it was given.
pub type Choice = (&'static str, Setting, bool);

/// Every option that configures FTLs.
pub fn given(args: &TuningArgs) -> [Choice; 25] {
    let (gecko, janus) = (&args.gecko, &args.janus);
    [
        ("--cache", Setting::CacheEntries, args.cache.is_some()),
        ("--segmented-lru", Setting::SegmentedLru, args.segmented_lru.is_some()),
        ("--cache-ways", Setting::CacheWays, args.cache_ways.is_some()),
        ("--victim", Setting::Victim, args.victim.is_some()),
        ("--placement", Setting::Placement, args.placement.is_some()),
        ("--age-groups", Setting::AgeGroups, args.age_groups.is_some()),
        ("--lanes", Setting::Lanes, args.lanes.is_some()),
        ("--validity", Setting::Validity, args.validity.is_some()),
        ("--gecko-t", Setting::Gecko, gecko.t.is_some()),
        ("--gecko-s", Setting::Gecko, gecko.s.is_some()),
        ("--gecko-two-way", Setting::Gecko, gecko.two_way.is_some()),
        ("--gecko-buffer", Setting::Gecko, gecko.buffer.is_some()),
        ("--gecko-packed", Setting::Gecko, gecko.packed.is_some()),
        ("--gecko-filter", Setting::Gecko, gecko.filter.is_some()),
        ("--gecko-spread", Setting::Gecko, gecko.spread.is_some()),
        ("--janus-utilisation", Setting::JanusUtilisation, janus.utilisation.is_some()),
        ("--janus-defuse", Setting::JanusDefuse, janus.defuse.is_some()),
        ("--janus-window", Setting::JanusDefuse, janus.window.is_some()),
        ("--janus-learn", Setting::JanusLearn, janus.learn),
        ("--janus-block-map", Setting::JanusBlockMap, janus.block_map.is_some()),
        ("--groups", Setting::Groups, args.groups.is_some()),
        ("--maps", Setting::Maps, args.maps.is_some()),
        ("--level-wear", Setting::Wear, args.level_wear.is_some()),
        ("--wear-scans", Setting::Wear, args.wear_scans.is_some()),
        ("--warm", Setting::Warm, args.warm.is_some()),
    ]
}

/// Refuses options that were given and mean nothing to any of these FTLs over the page-validity
/// store and the placement policy that were named; says which mean nothing to some.
pub fn not_taken(
    choices: &[Choice],
    ftls: &[Info],
    store: Option<&str>,
    placement: Option<&str>,
) -> Result<Vec<NotTaken>> {
    let mut list: Vec<NotTaken> = Vec::new();
    for &(option, setting, _) in choices.iter().filter(|(.., given)| *given) {
        let takes = |info: &Info| {
            info.honours_over(setting, store) || placement.is_some_and(|policy| info.honours_with(setting, policy))
        };
        let without: Vec<&str> = names(ftls, |info| !takes(info));
        if without.len() == ftls.len() {
            let them = without.join(", ");
            let who = who_honours(setting, store);
            return Err(usage(format!(
                "{option} means nothing to {them}; {who}; choose one of those, or leave {option} out"
            )));
        }
        match list.iter_mut().find(|entry| entry.ftls == without) {
            _ if without.is_empty() => {}
            Some(entry) => entry.options.push(option),
            None => list.push(NotTaken { options: vec![option], ftls: without }),
        }
    }
    Ok(list)
}

fn names(ftls: &[Info], which: impl Fn(&Info) -> bool) -> Vec<&'static str> {
    ftls.iter().filter(|info| which(info)).map(|info| info.name).collect()
}

/// The FTLs that honour a setting over the page-validity store that was named or their own, and
/// over which other.
fn who_honours(setting: Setting, store: Option<&str>) -> String {
    let table = ftl::ftls::infos();
    let honours = names(table, |info| info.honours_over(setting, store));
    let mut parts = Vec::new();
    if !honours.is_empty() {
        parts.push(format!("by {}", honours.join(", ")));
    }
    for row in validity::table().iter().filter(|row| row.settings.contains(&setting)) {
        let more =
            names(table, |info| !info.honours_over(setting, store) && info.honours_over(setting, Some(row.name)));
        if !more.is_empty() {
            parts.push(format!("with --validity {} by {}", row.name, more.join(", ")));
        }
    }
    for row in placement::table().iter().filter(|row| row.settings.contains(&setting)) {
        let more = names(table, |info| !info.honours_over(setting, store) && info.honours_with(setting, row.name));
        parts.push(format!("with --placement {} by {}", row.name, more.join(", ")));
    }
    format!("it is honoured {}", parts.join(", and "))
}

/// Refuses policies and page-validity stores that do not exist, and options that contradict each
/// other.
pub fn check(args: &TuningArgs) -> Result<()> {
    if let Some(name) = args.victim.as_deref().filter(|name| ftl::victim::find(name).is_none()) {
        let known = ftl::victim::table().iter().map(|entry| entry.name);
        return Err(unknown("victim policy", name, known, "victims"));
    }
    if let Some(name) = args.placement.as_deref().filter(|name| placement::find(name).is_none()) {
        let known = placement::table().iter().map(|entry| entry.name);
        return Err(unknown("placement policy", name, known, "placements"));
    }
    if let Some(name) = args.validity.as_deref().filter(|name| ftl::validity::find(name).is_none()) {
        let known = ftl::validity::table().iter().map(|entry| entry.name);
        return Err(unknown("page-validity store", name, known, "stores"));
    }
    if args.segmented_lru.is_some() && args.cache_ways.is_some() {
        return Err(usage(
            "--cache-ways divides the cache into sets, which have no protected segment; leave --segmented-lru out",
        ));
    }
    if args.janus.window.is_some() && args.janus.defuse.unwrap_or_default() == Defuse::Recency {
        return Err(usage("--janus-window means nothing while recency decides alone; add --janus-defuse validity"));
    }
    Ok(())
}

/// Refuses what only a simulation can have, for a disk.
pub fn check_disk(args: &TuningArgs) -> Result<()> {
    match args.placement.as_deref().and_then(placement::find) {
        Some(row) if row.knows_future => Err(usage(format!(
            "--placement {} decides by what will be written, which nobody knows of a disk in use; it is a reference for \
             openftl compare; choose another (openftl list placements)",
            row.name
        ))),
        _ => check(args),
    }
}

/// The configuration that the options ask for on a device, from `default` on; an FTL is told what
/// it honours of it.
pub fn asked(args: &TuningArgs, default: Config, geometry: &Geometry) -> Result<Config> {
    // The tables hold names that live as long as the program; the user's do not.
    let victim = args.victim.as_deref().and_then(ftl::victim::find).map_or(default.victim, |entry| entry.name);
    let placement = args.placement.as_deref().and_then(placement::find).map(|entry| entry.name);
    let mut config = Config {
        cache_entries: cache_entries(args, default)?,
        protected_percent: args.segmented_lru.unwrap_or(default.protected_percent),
        cache_ways: args.cache_ways.unwrap_or(default.cache_ways),
        victim,
        placement: placement.or(default.placement),
        age_groups: args.age_groups.unwrap_or(default.age_groups),
        lanes: args.lanes.unwrap_or(default.lanes),
        validity: args.validity.as_deref().and_then(validity::find).map(|entry| entry.name),
        groups: args.groups.map(|Groups { blocks, extra }| GroupOptions { blocks, extra }),
        wear: args
            .level_wear
            .map(|spread| WearOptions { spread, scans: args.wear_scans.unwrap_or(WearOptions::default().scans) }),
        gecko: gecko(&args.gecko, default.gecko, geometry)?,
        warm: args.warm.or(default.warm),
        ..default
    };
    config.maps = match args.maps {
        Some(MapsArg::Nonvolatile) => Maps::NonVolatile,
        Some(MapsArg::Flash) => Maps::InFlash,
        None => default.maps,
    };
    config.janus.defuse_among = match args.janus.defuse.unwrap_or_default() {
        Defuse::Recency => JanusOptions::PAPER.defuse_among,
        Defuse::Validity => args.janus.window.unwrap_or(16),
    };
    config.janus.utilisation_percent = args.janus.utilisation.unwrap_or(JanusOptions::PAPER.utilisation_percent);
    config.janus.learn_utilisation = args.janus.learn;
    config.janus.page_map_percent = args.janus.block_map.unwrap_or(JanusOptions::PAPER.page_map_percent);
    if Banks::fit(geometry, config.lanes) != config.lanes {
        let planes = match geometry.planes_per_die() {
            1 => String::new(),
            planes => format!("; ask for no more, or for {}, one for each plane", planes * geometry.dies()),
        };
        return Err(usage(format!(
            "--lanes {} is more than the {} dies of the device: blocks on the same die are not filled faster{planes}",
            config.lanes,
            geometry.dies()
        )));
    }
    Ok(config)
}

/// What is asked of Logarithmic Gecko, from `default` on.
fn gecko(args: &GeckoArgs, default: GeckoAsked, geometry: &Geometry) -> Result<GeckoAsked> {
    let filter_bytes = args.filter.map(|size| filter_bytes(size.0, geometry)).transpose()?;
    if args.two_way == Some(true) && args.spread.is_some_and(|ops| ops > 0) {
        return Err(usage("--gecko-spread spreads merges of many runs; leave --gecko-two-way out".to_owned()));
    }
    match (args.s, geometry.pages_per_block()) {
        (Some(partitions), pages) if partitions > pages => {
            Err(usage(format!("--gecko-s {partitions} is more than the {pages} pages of a block")))
        }
        _ => Ok(GeckoAsked {
            size_ratio: args.t.or(default.size_ratio),
            partitions: args.s.or(default.partitions),
            multi_way: args.two_way.map(|two_way| !two_way).or(default.multi_way),
            buffer_pages: args.buffer.or(default.buffer_pages),
            packed: args.packed.or(default.packed),
            filter_bytes: filter_bytes.or(default.filter_bytes),
            spread_ops: args.spread.or(default.spread_ops),
        }),
    }
}

fn cache_entries(args: &TuningArgs, default: Config) -> Result<u32> {
    let Some(cache) = args.cache else { return Ok(default.cache_entries) };
    match u32::try_from(cache.0 / CACHE_ENTRY_BYTES).unwrap_or(u32::MAX) {
        0 => Err(usage(format!("--cache {} B holds no entry; an entry is {CACHE_ENTRY_BYTES} B", cache.0))),
        entries => Ok(entries.min(default.logical_pages)),
    }
}

/// Says so if a cache is asked for that could hold more than the whole table.
pub fn cache_note(args: &TuningArgs, logical_pages: u32) -> Option<String> {
    let (asked, whole) = (args.cache?.0, u64::from(logical_pages) * CACHE_ENTRY_BYTES);
    (asked / CACHE_ENTRY_BYTES > u64::from(logical_pages)).then(|| {
        format!(
            "--cache {}: the whole table has {logical_pages} entries, so that {} are taken",
            bytes(asked),
            bytes(whole)
        )
    })
}

/// The size of a filter: at most a byte a page, eight times what a bitmap of all pages would take.
fn filter_bytes(asked: u64, geometry: &Geometry) -> Result<u32> {
    let most = geometry.pages().max(4);
    match u32::try_from(asked) {
        Ok(bytes) if (4..=most).contains(&bytes) => Ok(bytes),
        _ => Err(usage(format!(
            "--gecko-filter {asked} B is not between 4 B and {}, a byte for each page of the device; 1MiB is enough for 2 TiB",
            bytes(most.into())
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command, CompareArgs};
    use clap::{CommandFactory, Parser};

    /// Options that mean the same whichever FTL runs, and those that are checked against the device
    /// or each other.
    const OF_ANY_FTL: &[&str] = &[
        "workload",
        "ftl",
        "device",
        "capacity",
        "logical-ratio",
        "writes",
        "precondition",
        "delta",
        "seed",
        "jobs",
        "json",
        "no-timeline",
        "html",
        "write-buffer",
        "write-buffer-policy",
        "timing",
        "queue-depth",
        "open-loop",
        "time-scale",
        "think",
        "controller",
        "ftl-time",
        "suspend",
        "no-read-priority",
        "gc",
        "collectors",
        "trace-format",
        "time-unit",
        "lba-unit",
        "size-unit",
        "flag",
        "device-filter",
        "lenient",
        "limit",
        "shift",
        "repeat",
        "map",
    ];

    fn compare(arguments: &[&str]) -> Box<CompareArgs> {
        match Cli::try_parse_from(["openftl", "compare"].iter().chain(arguments)).map(|cli| cli.command) {
            Ok(Command::Compare(args)) => args,
            _ => panic!("{arguments:?} is no comparison"),
        }
    }

    fn info(name: &str) -> Info {
        *ftl::ftls::infos().iter().find(|info| info.name == name).unwrap()
    }

    #[test]
    fn every_option_either_configures_ftls_or_means_the_same_to_all() {
        let command = Cli::command();
        let options: Vec<&str> =
            command.find_subcommand("compare").unwrap().get_arguments().filter_map(clap::Arg::get_long).collect();
        let settings = given(&compare(&[]).tuning).map(|(option, ..)| option.trim_start_matches('-'));
        for option in &options {
            assert!(settings.contains(option) != OF_ANY_FTL.contains(option), "--{option} is in one list");
        }
        for option in settings.into_iter().chain(OF_ANY_FTL.iter().copied()) {
            assert!(options.contains(&option), "there is no --{option}");
        }
    }

    #[test]
    fn without_options_none_is_given_and_the_default_is_asked_for() {
        let args = compare(&[]);
        assert!(given(&args.tuning).iter().all(|(.., given)| !given));
        let default = Config::new(100_000);
        let geometry = nand::profiles::find("demo").unwrap().geometry().unwrap();
        assert_eq!(asked(&args.tuning, default, &geometry).unwrap(), default);
    }

    #[test]
    fn an_option_is_given_if_it_is_typed_even_with_its_default() {
        let args = compare(&["--victim", "greedy", "--gecko-t=2", "--maps", "flash", "--janus-defuse", "recency"]);
        let given: Vec<&str> =
            given(&args.tuning).into_iter().filter(|(.., given)| *given).map(|(option, ..)| option).collect();
        assert_eq!(given, ["--victim", "--gecko-t", "--janus-defuse", "--maps"]);
    }

    #[test]
    fn options_of_gecko_are_applied_on_top_of_what_an_ftl_has() {
        let geometry = nand::profiles::find("demo").unwrap().geometry().unwrap();
        let of = |ftl: &str, arguments: &[&str]| {
            let asked = asked(&compare(arguments).tuning, Config::new(100_000), &geometry).unwrap();
            info(ftl).config(&asked).gecko()
        };
        let (own, paper) = (info("flagship").preset.gecko, ftl::GeckoOptions::PAPER);
        assert!(own.packed && own.filter_bytes > 0);
        let t4 = ["--gecko-t", "4"];
        assert_eq!(of("flagship", &t4), ftl::GeckoOptions { size_ratio: 4, ..own });
        assert_eq!(of("gecko", &t4), ftl::GeckoOptions { size_ratio: 4, ..paper });
        let back = ["--gecko-packed=false", "--gecko-filter=8KiB", "--gecko-two-way"];
        let expected = ftl::GeckoOptions { multi_way: false, filter_bytes: 8192, ..paper };
        assert_eq!(of("flagship", &back), expected);
        assert_eq!(of("gecko", &["--gecko-packed"]), ftl::GeckoOptions { packed: true, ..paper });
    }

    #[test]
    fn options_are_told_apart_by_who_takes_them() {
        let args = compare(&["--cache", "8KiB", "--segmented-lru", "--maps", "flash", "--victim", "fifo"]);
        let ftls = ["page", "dftl", "bast"].map(info);
        let list = not_taken(&given(&args.tuning), &ftls, None, None).unwrap();
        let list: Vec<_> = list.into_iter().map(|entry| (entry.options, entry.ftls)).collect();
        let expected = [
            (vec!["--cache", "--segmented-lru"], vec!["page", "bast"]),
            (vec!["--victim"], vec!["bast"]),
            (vec!["--maps"], vec!["page", "dftl"]),
        ];
        assert_eq!(list, expected);
    }

    #[test]
    fn the_placement_decides_who_takes_its_options() {
        let choices = given(&compare(&["--age-groups", "4"]).tuning);
        assert!(not_taken(&choices, &[info("page")], None, Some("asa")).unwrap().is_empty());
        assert!(not_taken(&choices, &[info("asa")], None, None).unwrap().is_empty());
        let error = not_taken(&choices, &[info("page")], None, Some("split")).unwrap_err().to_string();
        assert_eq!(
            error,
            "--age-groups means nothing to page; it is honoured by asa, and with --placement asa by page, dftl, lazy, uftl, \
             ib-ftl, gecko, flagship, ftrm, ftrm-base, ftrm-victim, transblock, mapblock, ftrm-baseline; choose one of those, or leave \
             --age-groups out"
        );
    }

    #[test]
    fn a_disk_cannot_be_placed_by_its_future() {
        let known = check_disk(&compare(&["--placement", "sepbit"]).tuning);
        assert!(known.is_ok());
        let error = check_disk(&compare(&["--placement", "fk"]).tuning).unwrap_err().to_string();
        assert!(error.starts_with("--placement fk decides by what will be written"), "{error}");
    }

    #[test]
    fn the_store_decides_who_takes_the_options_of_a_store() {
        let choices = given(&compare(&["--gecko-packed"]).tuning);
        assert!(not_taken(&choices, &[info("page")], Some("gecko"), None).unwrap().is_empty());
        let error = not_taken(&choices, &[info("gecko")], Some("log"), None).unwrap_err().to_string();
        assert_eq!(
            error,
            "--gecko-packed means nothing to gecko; it is honoured with --validity gecko by page, dftl, asa, lazy, uftl, \
             ib-ftl, gecko, flagship, ftrm, ftrm-base, ftrm-victim, transblock, mapblock, ftrm-baseline; choose one of those, or leave \
             --gecko-packed out"
        );
    }
}
