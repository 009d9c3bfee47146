//! Failures that were found once do not come back.

#![allow(clippy::unwrap_used)]

use openftl_crash::replay;

#[test]
fn every_failure_found_once_stays_put_right() {
    let ids = include_str!("../regressions.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for id in ids {
        let failure = replay(id).unwrap();
        assert!(failure.is_none(), "{failure:#?}");
    }
}
