//! What the fuzz targets share: a limit on memory, and the answer to a finding.
//!
//! The code under test has no `unsafe`, so there is nothing for a sanitizer to find that is worth
//! halving the speed for. That it takes no more memory than it should is seen here instead.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that the code under test may hold at once.
const LIMIT: usize = 256 << 20;

struct Limited;

static HELD: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// Counts bytes, and ends the process when they are too many: the fuzzer then keeps the input.
fn hold(bytes: usize) {
    if HELD.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > LIMIT {
        // What follows allocates a little.
        HELD.store(0, Ordering::Relaxed);
        eprintln!("more than {} MiB of memory; the last piece is of {bytes} B", LIMIT >> 20);
        std::process::abort();
    }
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        hold(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        hold(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        hold(bytes);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(at, layout, bytes) }
    }
}

/// Runs the target with this name; a finding is a panic, which the fuzzer takes for one.
pub fn check(name: &str, bytes: &[u8]) {
    match openftl_fuzz::find(name) {
        Some(target) => judge((target.run)(bytes)),
        None => panic!("there is no target `{name}`"),
    }
}

/// Panics if something is wrong.
pub fn judge(answer: Result<(), String>) {
    if let Err(what) = answer {
        panic!("{what}");
    }
}
