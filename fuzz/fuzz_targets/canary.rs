//! The target `operations` over a table in which one FTL acknowledges writes too early. A fuzzer
//! that does not find that finds nothing.
#![no_main]

// Its other defects are for the tests.
#[allow(dead_code)]
#[path = "../../crates/crash/tests/all/broken.rs"]
mod broken;

use broken::{Defect, format, mount, page};
use ftl::ftls::Entry;
use openftl_crash::Operations;
use table::AnyBytes;

thread_local! {
    static TABLE: Operations = Operations::new(table::table().into_iter().map(|entry: Entry<AnyBytes>| {
        if entry.info.name != page().info.name {
            return entry;
        }
        Entry {
            info: entry.info,
            format: |flash, config| format(flash, config, Defect::Early),
            mount: Some(|flash, config| mount(flash, config, Defect::Early)),
        }
    }));
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    TABLE.with(|table| openftl_fuzz_targets::judge(openftl_fuzz::operations_on(table, bytes)));
});
