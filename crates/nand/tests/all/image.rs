//! Images survive, and what is no image is refused with what was found.
#![cfg(feature = "std")]
#![allow(clippy::unwrap_used)]

use crate::common::*;
use openftl_nand::image::ImageError;
use openftl_nand::*;

fn device() -> MemNand {
    let mut n = MemNand::new(geometry(), OLD);
    n.erase(BlockId(1)).unwrap();
    for page in [3, 0, 8, 9, 47] {
        fill(&mut n, page).unwrap();
    }
    n.program_meta(Ppn(20), b"map", &spare(7, 7)).unwrap();
    n.clear_flags(Ppn(20), Flags::from_bits(4)).unwrap();
    n.clear_flags(Ppn(47), Flags::from_bits(0x81)).unwrap();
    n.mark_bad(BlockId(1)).unwrap();
    n
}

fn bytes(n: &MemNand) -> Vec<u8> {
    let mut out = Vec::new();
    n.write_image(&mut out).unwrap();
    out
}

fn read(mut bytes: &[u8]) -> Result<MemNand, ImageError> {
    MemNand::read_image(&mut bytes)
}

#[test]
fn a_device_survives_its_image() {
    let mut before = device();
    let mut after = read(&bytes(&before)).unwrap();
    assert_eq!((after.geometry(), after.capabilities()), (before.geometry(), before.capabilities()));
    assert!(after.erase_counts().eq(before.erase_counts()));
    for page in 0..48 {
        assert_eq!(after.read_spare(Ppn(page)), before.read_spare(Ppn(page)));
        assert_eq!(get(&mut after, page), get(&mut before, page));
    }
    let mut map = [0; 4];
    after.read_meta(Ppn(20), &mut map).unwrap();
    assert_eq!(&map, b"map\xFF");
    assert!(after.is_bad(BlockId(1)) && after.erase_count(BlockId(1)) == 1);
    assert_eq!(after.probe(Ppn(20)).unwrap(), Spare { flags: Flags::from_bits(4), ..spare(7, 7) });
    assert_eq!(after.probe(Ppn(47)).unwrap().flags, Flags::from_bits(0x81));
    assert!(after.probe(Ppn(0)).unwrap().flags.is_none());
    after.clear_flags(Ppn(20), Flags::from_bits(1)).unwrap();
    assert_eq!(after.probe(Ppn(20)).unwrap().flags, Flags::from_bits(5));
    assert_eq!(law(after.clear_flags(Ppn(20), Flags::ALL)), Law::SpareReprogram, "twice is all");
    fill(&mut after, 1).unwrap();
    assert_eq!(law(fill(&mut after, 3)), Law::EraseBeforeProgram);
}

#[test]
fn every_truncation_is_refused() {
    let image = bytes(&device());
    for length in 0..image.len() {
        let error = read(&image[..length]).unwrap_err();
        assert!(matches!(error, ImageError::Truncated { bytes, .. } if bytes == length as u64), "{length}: {error}");
    }
}

#[test]
fn every_damaged_byte_is_noticed() {
    let mut image = bytes(&device());
    for at in 0..image.len() {
        image[at] ^= 0x10;
        assert!(read(&image).is_err(), "byte {at}");
        image[at] ^= 0x10;
    }
    image.push(0);
    assert!(matches!(read(&image), Err(ImageError::Malformed { .. })));
}

#[test]
fn what_is_no_image_is_named() {
    let mut image = bytes(&device());
    let foreign = read(b"hsqs is squashfs").unwrap_err();
    assert!(foreign.to_string().starts_with("not a NAND image: it starts with [68, 73, 71, 73"), "{foreign}");
    for version in [1, 9] {
        image[8] = version;
        let error = read(&image).unwrap_err();
        assert!(matches!(error, ImageError::Version { found } if found == u32::from(version)));
        let wanted = format!("the image has format version {version}; this program reads version 2");
        assert_eq!(error.to_string(), wanted);
    }
}

#[test]
fn saving_replaces_a_file() {
    let path = std::env::temp_dir().join(format!("openftl-nand-image-{}", std::process::id()));
    MemNand::new(geometry(), OLD).save(&path).unwrap();
    device().save(&path).unwrap();
    let mut opened = MemNand::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(get(&mut opened, 47).unwrap().0, stamp(47, 47));
    assert!(matches!(MemNand::open(&path), Err(ImageError::Io(_))));
}
