//! Short runs of the explorer over one FTL: put by `cargo xtask mutants` into its copy.
//!
//! The faults come in two groups. A failure ends the process before it is shrunk.

use openftl_crash::{Fault, Options, SHAPES, replay, run};

/// Names the FTLs.
#[test]
fn ftls() {
    for info in ftl::ftls::infos() {
        println!("\nFTL {}", info.name);
    }
}

fn ftl() -> String {
    std::env::var("OPENFTL_EXPLORER_FTL").unwrap_or_default()
}

/// Explores with every fault but these.
fn explore(left_out: &[Fault]) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let options = Options {
        ftls: vec![ftl()],
        depth: 2,
        cuts: number("OPENFTL_EXPLORER_CUTS").unwrap_or(3000),
        seed: number("OPENFTL_EXPLORER_SEED").unwrap_or(1),
        images: 60,
        endurance: 60,
        worn_step: 97,
        faults: Fault::ALL.into_iter().filter(|fault| !left_out.contains(fault)).collect(),
        ..Options::default()
    };
    let report = run(&options, &mut |_| {});
    assert!(report.is_ok_and(|report| report.is_clean()));
}

#[test]
fn fading() {
    explore(&[Fault::Worn, Fault::Endurance]);
}

#[test]
fn worn() {
    // With what fades a worn page has to be an error.
    explore(&[Fault::Images, Fault::Mounts]);
}

/// What was found once.
#[test]
fn replays() {
    let begin = format!("{}-0", ftl());
    for id in include_str!("regressions.txt").lines().filter(|line| line.starts_with(&begin)) {
        assert!(replay(id).is_ok_and(|failure| failure.is_none()), "{id}");
    }
}

/// What it did, to the first shape of device on which it does otherwise.
#[test]
fn behaviour() {
    let (begin, then) = (format!("{} ", ftl()), include_str!("behaviour.txt"));
    let mut then = then.lines().filter(|line| line.starts_with(&begin));
    for shape in SHAPES {
        let report = run(&Options::trail(&ftl(), shape.name), &mut |_| {});
        let Some(ftl) = report.ok().and_then(|report| report.ftls.into_iter().next()) else { panic!("no report") };
        if ftl.not_mountable.is_none() {
            let now = format!("{begin}{} {} {:016x}", shape.name, ftl.cut_points, ftl.trail);
            assert_eq!(Some(&*now), then.next());
        }
    }
    assert_eq!(then.next(), None);
}
