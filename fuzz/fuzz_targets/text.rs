#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| openftl_fuzz_targets::check("text", bytes));
