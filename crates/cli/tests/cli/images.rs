//! Disks in files.

use super::common::{folder, json_of, openftl, output_of};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

#[test]
fn a_disk_is_made_described_and_checked() {
    let folder = folder();
    let path = folder.path().join("disk.nand");
    let image = path.to_str().unwrap();
    let made = output_of(&["format", image, "--capacity", "64MiB", "--gecko-t", "3", "--lanes", "2"]);
    assert!(made.contains("44.8 MiB of disk") && made.contains("64 MiB raw"), "{made}");
    let found = fs::metadata(&path).unwrap();
    assert!(found.len() > 64 << 20 && found.blocks() * 512 < 1 << 20, "{} B on disk", found.blocks() * 512);
    let before = fs::read(&path).unwrap();
    let described = json_of(&["inspect", image, "--json"]);
    assert_eq!(described["disk"]["ftl"], "gecko");
    assert_eq!(described["disk"]["settings"]["lanes"], 2);
    assert_eq!(described["disk"]["settings"]["gecko"]["t"], 3);
    assert_eq!(described["device"]["profile"], "demo");
    assert_eq!(described["device"]["raw_bytes"], 64 << 20);
    assert_eq!(described["closed"], true);
    assert_eq!(described["pages"]["live"], 0);
    assert_eq!(described["pages"]["erased"], 16_384);
    assert!(described["mount"]["steps"].as_array().unwrap().len() > 3);
    let text = output_of(&["inspect", image, "--quick"]);
    for part in ["64 MiB raw", "11 468 pages", "t 3", "properly", "a mount would", "in all"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100) && !text.contains("live pages"), "{text}");
    let checked = json_of(&["check", image, "--json"]);
    assert_eq!((&checked["sound"], &checked["pages"]["read"]), (&true.into(), &11_468.into()));
    assert!(output_of(&["check", image]).contains("11 468 pages read, 0 of them mapped, 0 unreadable"));
    assert!(fs::read(&path).unwrap() == before, "the file was touched");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was left beside it");
}

#[test]
fn a_disk_of_several_shards_is_made_described_and_checked() {
    let folder = folder();
    let path = folder.path().join("disk.nand");
    let image = path.to_str().unwrap();
    let made = output_of(&["format", image, "--capacity", "128MiB", "--shards", "4"]);
    assert!(made.contains("under gecko over 4 shards") && made.contains("each shard: demo: 32 MiB raw"), "{made}");
    let before = fs::read(&path).unwrap();
    let described = json_of(&["inspect", image, "--json"]);
    assert_eq!(described["format_version"], 4);
    assert_eq!(described["disk"]["shards"], 4);
    assert_eq!(described["device"]["raw_bytes"], 128 << 20);
    assert_eq!(described["pages"]["erased"], 32_768);
    let pages = described["disk"]["logical_pages"].as_u64().unwrap();
    assert!(pages.is_multiple_of(64) && described["disk"]["bytes"] == pages * 4096, "whole stripes: {pages}");
    let text = output_of(&["inspect", image, "--quick"]);
    assert!(text.contains("striped over 4 shards") && text.contains("128 MiB raw"), "{text}");
    let checked = json_of(&["check", image, "--json"]);
    assert_eq!((&checked["sound"], checked["pages"]["read"].as_u64()), (&true.into(), Some(pages)));
    assert!(fs::read(&path).unwrap() == before, "the file was touched");

    // A page of the third shard's header: the shard is named.
    let each = before.len() / 4;
    let mut damaged = before.clone();
    damaged[2 * each + 20] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let refused = openftl(&["check", image]);
    assert!(refused.code == 1 && refused.err.contains("device 2 of the file: the file is damaged"), "{}", refused.err);
    fs::write(&path, &before[..before.len() - each]).unwrap();
    let refused = openftl(&["inspect", image]);
    assert!(refused.code == 1 && refused.err.contains("the file is truncated"), "{}", refused.err);
    output_of(&["format", image, "--force", "--capacity", "32MiB"]);
    let described = json_of(&["inspect", image, "--json", "--quick"]);
    assert_eq!((&described["format_version"], &described["disk"]["shards"]), (&3.into(), &1.into()));
}

#[test]
fn a_file_is_replaced_only_by_force_and_if_nobody_has_it_open() {
    let folder = folder();
    let path = folder.path().join("disk.nand");
    let image = path.to_str().unwrap();
    fs::write(&path, b"dear to somebody").unwrap();
    let make = |more: &[&str]| openftl(&[&["format", image, "--capacity", "32MiB"], more].concat());
    let refused = make(&[]);
    assert_eq!((refused.code, fs::read(&path).unwrap().len()), (1, 16));
    assert!(refused.err.contains("exists; --force replaces it"), "{}", refused.err);
    assert_eq!(make(&["--force"]).code, 0);
    let open = File::open(&path).unwrap();
    open.lock().unwrap();
    let refused = make(&["--force"]);
    assert!(refused.code == 1 && refused.err.contains("another process has the device open"), "{}", refused.err);
    for command in ["inspect", "check"] {
        let refused = openftl(&[command, image]);
        assert!(refused.code == 1 && refused.err.contains("another process has the device open"), "{}", refused.err);
    }
    drop(open);
    assert_eq!(make(&["--force", "--ftl", "janus"]).code, 0);
    assert_eq!(json_of(&["inspect", image, "--json", "--quick"])["disk"]["ftl"], "janus");
    let refused = openftl(&["format", folder.path().to_str().unwrap(), "--force"]);
    assert!(refused.code == 1 && refused.err.contains("is no plain file"), "{}", refused.err);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was left beside it");
}

#[test]
fn what_cannot_be_a_disk_in_a_file_is_refused() {
    let folder = folder();
    let path = folder.path().join("disk.nand");
    let refused = |arguments: &[&str], wanted: &str| {
        let ran = openftl(&[&["format", path.to_str().unwrap()], arguments].concat());
        assert!(ran.code == 2 && ran.err.contains(wanted), "{arguments:?}: {} {}", ran.code, ran.err);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments:?} left a file");
    };
    refused(&["--ftl", "dftl"], "dftl does not survive power loss, and so no killed process");
    let flash = openftl(&["format", "/dev/mtd-of-nobody"]);
    assert!(flash.code == 1 && flash.err.contains("/dev/mtd-of-nobody cannot be opened"), "{}", flash.err);
    let flash = openftl(&["format", "/dev/null", "--force"]);
    assert!(flash.code == 1 && flash.err.contains("/dev/null is a character device of another kind"), "{}", flash.err);
    let flash = openftl(&["format", "/dev/null", "--capacity", "1GiB"]);
    assert!(flash.code == 2 && flash.err.contains("--capacity means nothing here"), "{}", flash.err);
    let flash = openftl(&["format", "/dev/mtd-of-nobody", "--shards", "2"]);
    assert!(flash.code == 2 && flash.err.contains("--shards 2 is for files"), "{}", flash.err);
    refused(&["--shards", "65"], "65 is not in 1..=64");
    refused(&["--shards", "64", "--capacity", "32MiB"], "each of 64 shards has 512 KiB of the device");
    refused(&["--ftl", "gekco"], "did you mean `gecko`?");
    refused(&["--ftl", "lftl", "--shards", "2"], "--shards means nothing to lftl");
    refused(&["--ftl", "lftl", "--cache", "8KiB"], "--cache means nothing to lftl");
    refused(&["--ftl", "lftl", "--device", "demo", "--capacity", "32MiB"], "make the disk smaller");
    let flash = openftl(&["format", "/dev/mtd-of-nobody", "--ftl", "lftl"]);
    assert!(flash.code == 2 && flash.err.contains("lftl is for files"), "{}", flash.err);
    refused(&["--ftl", "bast", "--cache", "8KiB"], "--cache means nothing to bast");
    refused(&["--ftl", "bast", "--maps", "nonvolatile"], "--maps nonvolatile assumes memory that no disk of bytes has");
    refused(&["--ftl", "nftl"], "sequential program order");
    refused(&["--logical-ratio", "1.5"], "--logical-ratio 1.5 is not between 0 and 1");
    refused(&["--lanes", "99"], "--lanes 99 is more than the 32 dies");
    refused(&["--capacity", "16MiB", "--logical-ratio", "0.95"], "cannot be built on this device");
}

#[test]
fn what_is_no_disk_is_named_with_its_file() {
    let folder = folder();
    let path = folder.path().join("disk.nand");
    let image = path.to_str().unwrap();
    let refused = |wanted: &str| {
        for command in ["inspect", "check"] {
            let ran = openftl(&[command, image]);
            let named = ran.err.contains(image) && ran.err.contains(wanted);
            assert!(ran.code == 1 && named, "{command}: {} {}", ran.code, ran.err);
        }
    };
    refused("No such file");
    fs::write(&path, b"PK\x03\x04 is a zip file").unwrap();
    refused("no device in a file");
    fs::remove_file(&path).unwrap();
    output_of(&["format", image, "--capacity", "32MiB"]);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    refused("the file is truncated");
    let mut damaged = whole.clone();
    damaged[30] ^= 1;
    fs::write(&path, &damaged).unwrap();
    refused("its header at byte 0 does not match its check value");
    let geometry = nand::profiles::find("demo").unwrap().scaled(32 << 20).unwrap();
    for (owner, wanted) in [("", "cannot be understood"), ("version = 7", "has version 7"), ("= 1", "is no TOML")] {
        fs::remove_file(&path).unwrap();
        drop(nand::FileNand::create(&path, geometry, nand::Capabilities::MODERN, owner.as_bytes()).unwrap());
        refused(wanted);
    }
}

#[test]
fn a_record_that_does_not_fit_its_devices_is_refused() {
    let folder = folder();
    let path = folder.path().join("disk.nand");
    let image = path.to_str().unwrap();
    let geometry = nand::profiles::find("demo").unwrap().scaled(32 << 20).unwrap();
    let record = "version = 1\ndevice = \"demo\"\nmade_by = \"a test\"\n[lftl]\nlogical_pages = 100\n";
    let refused = |owner: &str, joint: bool, wanted: &str| {
        let make = if joint { nand::FileNand::create_joint } else { nand::FileNand::create_several };
        drop(make(&path, 2, geometry, nand::Capabilities::MODERN, owner.as_bytes()).unwrap());
        for command in ["inspect", "check"] {
            let ran = openftl(&[command, image]);
            let named = ran.err.contains(image) && ran.err.contains(wanted);
            assert!(ran.code == 1 && named, "{command}: {} {}", ran.code, ran.err);
        }
        fs::remove_file(&path).unwrap();
    };
    refused(record, false, "the devices number their operations one by one");
    refused("version = 1", true, "the record tells of no disk of lftl");
    refused(&record.replace("version = 1", "version = 2"), true, "has version 2; this program reads version 1");
    refused(&record.replace("logical_pages", "pages"), true, "cannot be understood");
}
