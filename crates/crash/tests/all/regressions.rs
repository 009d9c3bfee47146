//! Failures that were found once do not come back, and those that are open are known.

#![allow(clippy::unwrap_used)]

use openftl_crash::replay;

fn ids(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[test]
fn every_failure_found_once_stays_put_right() {
    for id in ids(include_str!("../regressions.txt")) {
        let failure = replay(id).unwrap();
        assert!(failure.is_none(), "{failure:#?}");
    }
}

/// A failure that has gone belongs to the others.
#[test]
fn every_failure_that_is_open_is_still_there() {
    for id in ids(include_str!("../open.txt")) {
        assert!(replay(id).unwrap().is_some(), "{id} has gone; move it to regressions.txt");
    }
}
