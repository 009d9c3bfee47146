//! Running the binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a run of `openftl` gave.
pub struct Ran {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs `openftl` with these arguments in this folder.
pub fn openftl_in(folder: &Path, arguments: &[&str]) -> Ran {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_openftl")).args(arguments).current_dir(folder).output().unwrap();
    Ran {
        code: status.code().unwrap(),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// Runs `openftl` with these arguments.
pub fn openftl(arguments: &[&str]) -> Ran {
    openftl_in(Path::new(env!("CARGO_TARGET_TMPDIR")), arguments)
}

/// Runs `openftl`, which must succeed, and gives its output.
pub fn output_of(arguments: &[&str]) -> String {
    let ran = openftl(arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
    ran.out
}

/// Runs `openftl`, which must succeed, and gives its output as JSON.
pub fn json_of(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&output_of(arguments)).unwrap()
}

/// A folder that vanishes with its value.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A small trace in the five-column form: writes over 64 pages, now and then a read.
pub fn small_trace(folder: &Path) -> PathBuf {
    let path = folder.join("small.trace");
    let mut text = String::new();
    for i in 0..2000_u64 {
        let page = i * 37 % 64;
        text.push_str(&format!("{}.5 0 {} 8 {}\n", i, page * 8, u8::from(i % 7 == 0)));
    }
    std::fs::write(&path, text).unwrap();
    path
}
