//! FTLs that are broken on purpose: an explorer that does not catch them explores nothing.

#![allow(clippy::unwrap_used)]

use crate::broken::{Defect, format, mount, page};
use ftl::Config;
use ftl::ftls::Entry;
use openftl_crash::{Fault, Mode, Options, replay_on, run_on};
use table::AnyBytes;

macro_rules! canary {
    ($defect:expr) => {
        Entry::<AnyBytes> {
            info: page().info,
            format: |flash, config| format(flash, config, $defect),
            mount: Some(|flash, config| mount(flash, config, $defect)),
        }
    };
}

/// Explores a canary; what was found, after making sure that its id replays it.
fn found(entry: Entry<AnyBytes>, faults: Vec<Fault>) -> Vec<openftl_crash::Failure> {
    let options = Options {
        mode: Mode::Linear,
        cuts: 500,
        geometry: Some("tiny".into()),
        faults,
        endurance: 40,
        ..Options::default()
    };
    let entries = [entry];
    let report = run_on(&entries, &options, &mut |_| {}).unwrap();
    let failures = report.ftls[0].failures.clone();
    for failure in &failures {
        assert_eq!(replay_on(&entries, &failure.id).unwrap().as_ref(), Some(failure));
        assert_eq!(openftl_crash::replay(&failure.id).unwrap(), None, "the FTL that is not broken");
    }
    failures
}

#[test]
fn a_write_acknowledged_too_early_is_caught_and_shrunk_to_a_few_steps() {
    let failures = found(canary!(Defect::Early), vec![]);
    assert!(failures[0].what.contains("should be version"), "{failures:#?}");
    assert!(failures[0].workload.len() <= 3, "{failures:#?}");
    assert_eq!(failures[0].cuts.len(), 1);
}

#[test]
fn a_mount_that_leaks_a_block_is_caught_by_cutting_one_device_again_and_again() {
    let failures = found(canary!(Defect::Leak), vec![Fault::Endurance]);
    assert!(!failures.is_empty());
}

#[test]
fn a_mount_that_panics_at_a_torn_page_is_caught() {
    let failures = found(canary!(Defect::Panic), vec![]);
    assert!(failures[0].what.contains("every page can be read"), "{failures:#?}");
    assert!(failures[0].workload.len() <= 2, "{failures:#?}");
}

#[test]
fn a_mount_that_never_ends_is_caught() {
    let failures = found(canary!(Defect::Hang), vec![]);
    assert!(failures.iter().any(|failure| failure.what.contains("does not end")), "{failures:#?}");
}

#[test]
fn data_of_another_page_is_caught() {
    let failures = found(canary!(Defect::Neighbour), vec![]);
    assert!(
        failures[0].what.contains("never written there") || failures[0].what.contains("should be"),
        "{failures:#?}"
    );
}

#[test]
fn a_read_that_sets_nothing_is_caught() {
    let failures = found(canary!(Defect::Mute), vec![]);
    assert!(!failures.is_empty());
}

#[test]
fn a_worn_page_that_reads_as_what_its_flash_page_holds_by_then_is_caught() {
    let failures = found(canary!(Defect::Reused), vec![Fault::Worn]);
    assert!(failures.iter().any(|failure| failure.faults.contains("Worn")), "{failures:#?}");
}

#[test]
fn a_battery_that_saves_nothing_is_caught() {
    fn dftl() -> Entry<AnyBytes> {
        table::find("dftl").unwrap()
    }
    let failures = found(
        Entry {
            info: dftl().info,
            format: |flash, config| (dftl().format)(flash, &Config { battery: false, ..*config }),
            mount: Some(|flash, config| (dftl().mount.unwrap())(flash, &Config { battery: false, ..*config })),
        },
        vec![],
    );
    assert!(failures[0].what.contains("logical page"), "{failures:#?}");
    assert!(failures[0].workload.len() <= 2, "{failures:#?}");
}
