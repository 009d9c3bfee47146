//! Failures that were found once do not come back.

#![allow(clippy::unwrap_used)]

use openftl_crash::replay;

#[test]
fn every_failure_found_once_stays_put_right() {
    for id in include_str!("../regressions.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let failure = replay(id).unwrap();
        assert!(failure.is_none(), "{failure:#?}");
    }
}
