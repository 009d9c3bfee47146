//! Every input that is kept is run once: the seeds from which a fuzzer starts, and what it found
//! once.

#![allow(clippy::unwrap_used)]

use openftl_fuzz::{TARGETS, find};
use std::fs;
use std::path::{Path, PathBuf};

fn folder(kind: &str, target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(kind).join(target)
}

/// The files of a folder, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Runs the target with every kept input; how many there are of each kind.
fn replay(target: &str) -> [usize; 2] {
    ["seeds", "regressions"].map(|kind| {
        let files = files(&folder(kind, target));
        for file in &files {
            // A panic does not say which file it is about.
            println!("{}", file.display());
            (find(target).unwrap().run)(&fs::read(file).unwrap()).unwrap_or_else(|what| panic!("{what}"));
        }
        files.len()
    })
}

macro_rules! kept_inputs {
    ($($target:ident),*) => {
        $(
            #[test]
            fn $target() {
                let [seeds, _] = replay(stringify!($target));
                assert!(seeds > 0, "a fuzzer that starts with nothing does not come far in a minute");
            }
        )*

        #[test]
        fn every_target_is_replayed_and_every_folder_is_one_of_a_target() {
            assert_eq!(TARGETS.map(|target| target.name), [$(stringify!($target)),*]);
            for kind in ["seeds", "regressions"] {
                for found in files(&folder(kind, "")) {
                    assert!(find(found.file_name().unwrap().to_str().unwrap()).is_some(), "{}", found.display());
                }
            }
        }
    };
}

kept_inputs!(operations, mount, image, trace, text);

#[test]
fn any_bytes_will_do() {
    for target in TARGETS {
        for end in 0..64 {
            let bytes: Vec<u8> = (0..end).map(|n: u8| n.wrapping_mul(37) ^ end).collect();
            assert_eq!((target.run)(&bytes), Ok(()), "{} {bytes:?}", target.name);
        }
    }
}
