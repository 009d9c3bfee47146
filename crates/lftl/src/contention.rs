//! How long threads wait for each other in real time, for measurements.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static WAITS: AtomicU64 = AtomicU64::new(0);
static WAITED_NS: AtomicU64 = AtomicU64::new(0);

/// A lock, or what another thread was about to do, was waited for.
pub(crate) fn waited(time: Duration) {
    WAITS.fetch_add(1, Ordering::Relaxed);
    WAITED_NS.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// How often threads of this process waited since the last call, and how long together.
pub fn take() -> (u64, Duration) {
    (WAITS.swap(0, Ordering::Relaxed), Duration::from_nanos(WAITED_NS.swap(0, Ordering::Relaxed)))
}
