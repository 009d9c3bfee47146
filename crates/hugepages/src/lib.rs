//! A global allocator that asks Linux for huge pages where an array is large.
//!
//! A simulated device has tables of some bytes a flash page, and a host write looks at random
//! entries of several of them. With pages of 4 KiB nearly each look also misses the processor's
//! translation cache. Many systems give huge pages only to memory for which they were asked.
//!
//! [`System`] does the work. Memory that is never touched stays unmapped as before; memory that is
//! touched here and there takes up to 2 MiB for each place.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: openftl_hugepages::HugePages = openftl_hugepages::HugePages;
//! let table = vec![0_u32; 4 << 20];
//! assert!(table.iter().all(|&entry| entry == 0));
//! ```
#![deny(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

/// Allocations from so many bytes on are advised: they hold at least one aligned huge page of
/// 2 MiB, and one call of the system for each is no cost.
const LEAST_BYTES: usize = 4 << 20;

/// [`System`], with huge pages for allocations from 4 MiB on.
///
/// Where the system has none, or refuses, it is [`System`] alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct HugePages;

// SAFETY: every method hands its arguments on to `System`, and hands back what that returned.
// Advice changes neither content nor extent of an allocation.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is that of `System`.
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as in `alloc`; `start` came from `System`.
        advised(unsafe { System.realloc(start, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`; `start` came from `System`.
        unsafe { System.dealloc(start, layout) }
    }
}

/// Asks for huge pages below an allocation, and returns it.
#[inline]
fn advised(start: *mut u8, bytes: usize) -> *mut u8 {
    if bytes >= LEAST_BYTES && !start.is_null() {
        advise(start, bytes);
    }
    start
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn advise(start: *mut u8, bytes: usize) {
    use rustix::mm::{Advice, madvise};
    const HUGE: usize = 2 << 20;
    let (first, last) = (start.addr().next_multiple_of(HUGE), (start.addr() + bytes) / HUGE * HUGE);
    if first < last {
        // SAFETY: the range lies within one allocation of `bytes` from `start`, and this advice
        // leaves content and access as they are. A system without huge pages answers an error,
        // after which the memory is what it was.
        let _ = unsafe { madvise(start.with_addr(first).cast(), last - first, Advice::LinuxHugepage) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise(_: *mut u8, _: usize) {}
