//! Which mutant is on: put by `cargo xtask mutants` into its copy of the crate.
//!
//! `OPENFTL_MUTANT` holds the number of one; none is on without. `OPENFTL_MUTANT_REACHED` names a
//! file, to which the number of each mutant is added when its place is first reached.

extern crate std;

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

/// The environment was not read yet.
const UNREAD: u32 = u32::MAX;
/// None is on, and places that are reached are noted.
const NOTING: u32 = u32::MAX - 1;
/// None is on.
const NONE: u32 = u32::MAX - 2;

static ACTIVE: AtomicU32 = AtomicU32::new(UNREAD);
static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
static NOTES: OnceLock<Option<File>> = OnceLock::new();

#[inline]
pub(crate) fn on(id: u32) -> bool {
    let active = ACTIVE.load(Relaxed);
    if active <= NONE { active == id } else { slow(id) }
}

#[cold]
#[inline(never)]
fn slow(id: u32) -> bool {
    if ACTIVE.load(Relaxed) == UNREAD {
        read();
    }
    let active = ACTIVE.load(Relaxed);
    if active == NOTING {
        note(id);
    }
    active == id
}

fn read() {
    if let Some(path) = std::env::var_os("OPENFTL_MUTANT_REACHED") {
        NOTES.get_or_init(|| File::options().append(true).create(true).open(path).ok());
        ACTIVE.store(NOTING, Relaxed);
        return;
    }
    let named = std::env::var("OPENFTL_MUTANT").ok().and_then(|id| id.parse().ok());
    ACTIVE.store(named.unwrap_or(NONE), Relaxed);
}

/// Allocates nothing: some tests count allocations.
fn note(id: u32) {
    if REACHED[id as usize].swap(true, Relaxed) {
        return;
    }
    let mut line = [b'\n'; 11];
    let (mut at, mut rest) = (10, id);
    loop {
        at -= 1;
        line[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if let Some(Some(mut file)) = NOTES.get().map(Option::as_ref) {
        assert!(file.write_all(&line[at..]).is_ok(), "the note of a mutant cannot be written");
    }
}
