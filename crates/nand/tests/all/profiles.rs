//! The built-in profiles hold together.
#![allow(clippy::unwrap_used)]

use openftl_nand::{ScaleError, find, profiles};

#[test]
fn every_profile_has_a_name_of_its_own_and_a_geometry() {
    for (index, profile) in profiles().iter().enumerate() {
        assert_eq!(profiles().iter().position(|other| other.name == profile.name), Some(index));
        let geometry = profile.geometry().unwrap();
        assert_eq!(profile.scaled(geometry.raw_bytes()).unwrap(), geometry, "{}", profile.name);
        assert!(profile.default_logical_ratio > 0.0 && profile.default_logical_ratio < 1.0);
        assert!(profile.endurance_erases > 0 && profile.pairing.bits_per_cell > 0);
        assert!(!profile.summary.is_empty() && !profile.source.is_empty());
        assert!(!profile.source.contains("  "), "{} has a hole in its source", profile.name);
    }
    assert!(find("gecko-3tb").is_none());
}

#[test]
fn the_papers_devices_are_as_large_as_the_papers_say() {
    let bytes = |name| find(name).unwrap().geometry().unwrap().raw_bytes();
    assert_eq!(bytes("gecko-2tb"), 2 << 40);
    assert_eq!(bytes("janus-slc"), 1 << 30);
    assert_eq!(bytes("lftl-card"), 512 << 30);
    assert_eq!(bytes("ftrm-qlc"), 128 << 30);
    assert_eq!(bytes("spi-nand-1g"), 128 << 20);
    assert_eq!(bytes("demo"), 1 << 30);
    assert_eq!(bytes("modern-qlc"), 8 << 40);
}

#[test]
fn scaling_keeps_everything_but_the_number_of_blocks() {
    let demo = find("demo").unwrap();
    let a_block_each = 32 * 128 * 4096;
    let least = demo.scaled(a_block_each).unwrap();
    assert_eq!(least.blocks(), 32);
    assert_eq!(demo.scaled(2 * a_block_each - 1).unwrap().blocks(), 32);
    assert_eq!(demo.scaled(2 * a_block_each).unwrap().blocks(), 64);
    assert_eq!((least.dies(), least.page_bytes()), (32, 4096));
    assert_eq!(
        demo.scaled(a_block_each - 1),
        Err(ScaleError::TooSmall { capacity_bytes: a_block_each - 1, planes: 32, least_bytes: a_block_each })
    );
    assert!(matches!(find("tiny").unwrap().scaled(u64::MAX), Err(ScaleError::TooManyBlocks { .. })));
    assert!(matches!(demo.scaled(64 << 40), Err(ScaleError::Geometry(_))));
}

#[cfg(feature = "serde")]
#[test]
fn profiles_round_trip_and_unknown_fields_are_refused() {
    use openftl_nand::Profile;
    for profile in profiles() {
        let text = serde_json::to_string(profile).unwrap();
        assert_eq!(&serde_json::from_str::<Profile>(&text).unwrap(), profile);
        let strange = text.replacen("\"blocks\"", "\"colour\":1,\"blocks\"", 1);
        let error = serde_json::from_str::<Profile>(&strange).unwrap_err().to_string();
        assert!(error.contains("unknown field `colour`"), "{error}");
    }
}
