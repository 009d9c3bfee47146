//! Anything that a host can do with a disk while power is cut, checked against the model.

use crash::Operations;
use ftl::ftls::Entry;
use table::AnyBytes;

thread_local! {
    static TABLE: Operations = Operations::new(table::table());
}

pub(crate) fn run(bytes: &[u8]) -> Result<(), String> {
    TABLE.with(|operations| operations_on(operations, bytes))
}

/// Runs the case that these bytes stand for over a table of FTLs, such as one with an FTL that is
/// broken on purpose.
///
/// # Errors
/// The broken promise, and the id that replays it.
pub fn operations_on(operations: &Operations, bytes: &[u8]) -> Result<(), String> {
    operations.run(bytes).map_err(|failure| {
        format!(
            "{}\n  on device `{}`, {}\n  the disk does: {}\n  cuts: {}\n  openftl crash --replay {}",
            failure.what,
            failure.shape,
            if failure.faults.is_empty() { "no faults beside cuts" } else { &failure.faults },
            failure.workload.join(", "),
            failure.cuts.join(", "),
            failure.id
        )
    })
}

/// The FTLs that can be mounted, over any device.
pub(crate) fn mountable() -> Vec<Entry<AnyBytes>> {
    table::table().into_iter().filter(|entry| entry.mount.is_some()).collect()
}
