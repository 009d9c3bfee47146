//! `openftl`
mod report;
mod units;
fn main() {}
