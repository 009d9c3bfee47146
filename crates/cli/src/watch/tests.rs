//! Frames as they should be, and what keys do.
//!
//! `OPENFTL_RENEW_FRAMES=1` writes the expected frames anew.

#![allow(clippy::unwrap_used)]

use super::screen::{Key, Scene, text};
use super::*;
use crate::args::{Cli, Command};
use clap::Parser as _;
use std::path::Path;

fn watch(arguments: &[&str]) -> Box<WatchArgs> {
    match Cli::try_parse_from(["openftl", "watch"].iter().chain(arguments)).map(|cli| cli.command) {
        Ok(Command::Watch(args)) => args,
        _ => panic!("{arguments:?} does not ask to watch"),
    }
}

fn tour(arguments: &[&str]) -> Tour {
    let (spec, title) = prepare(&watch(arguments)).unwrap();
    Tour::new(Show::new(&spec).unwrap(), title)
}

fn expect(name: &str, frame: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/watch/frames").join(name);
    if std::env::var_os("OPENFTL_RENEW_FRAMES").is_some() {
        std::fs::write(&path, frame).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(frame == expected, "{name} is another frame now; OPENFTL_RENEW_FRAMES=1 renews it:\n{frame}");
}

#[test]
fn a_frame_of_the_guide_is_as_expected() {
    let mut tour = tour(&[]);
    for _ in 0..5 {
        assert!(tour.step(StepBy::Chapter).unwrap());
    }
    expect("run.txt", &text(&tour, (110, 40)).unwrap());
}

#[test]
fn a_short_and_narrow_frame_is_as_expected() {
    let mut tour = tour(&["--ftl", "page", "--seed", "7"]);
    for _ in 0..4 {
        tour.step(StepBy::Collection).unwrap();
    }
    expect("short.txt", &text(&tour, (80, 24)).unwrap());
}

#[test]
fn a_replay_is_drawn_as_expected() {
    let mut replay = replay::Replay::new("gecko", 1).unwrap();
    assert!(replay.step(StepBy::Chapter).unwrap());
    expect("replay.txt", &text(&replay, (110, 40)).unwrap());
    replay.press(Key::Back).unwrap();
    assert!(text(&replay, (110, 40)).unwrap().contains("power is cut at operation"));
}

#[test]
fn the_same_seed_shows_the_same_and_every_chapter_comes() {
    let shown = |seed| {
        let mut tour = tour(&["--seed", seed]);
        let mut all = String::new();
        while tour.step(StepBy::Chapter).unwrap() {
            let frame = text(&tour, (120, 46)).unwrap();
            assert!(!frame.contains("did not come"), "{frame}");
            all += &frame;
        }
        all
    };
    assert_eq!(shown("3"), shown("3"));
    assert_ne!(shown("3"), shown("4"));
}

#[test]
fn pages_agree_with_what_the_ftl_says_of_its_blocks() {
    for ftl in ["page", "gecko"] {
        let (spec, _) = prepare(&watch(&["--ftl", ftl, "--workload", "uniform:trims=10,reads=20"])).unwrap();
        let mut show = Show::new(&spec).unwrap();
        for _ in 0..3000 {
            show.request().unwrap();
            for view in &show.seen.blocks {
                let live = show.pages.live(view.block);
                assert!(live <= view.live, "{ftl}: {view:?} has {live} live pages after request {}", show.requests);
            }
        }
        let programs: u64 = show.programs.iter().sum();
        assert!(programs > show.written && show.collections > 100, "{ftl}: {programs}");
    }
}

#[test]
fn help_lies_over_a_frame_until_a_key_is_pressed() {
    let mut tour = tour(&[]);
    tour.press(Key::Help).unwrap();
    assert!(text(&tour, (100, 40)).unwrap().contains("any key goes back"));
    tour.press(Key::Step(StepBy::Request)).unwrap();
    let frame = text(&tour, (100, 40)).unwrap();
    assert!(!frame.contains("any key goes back") && frame.contains("request 0 "), "{frame}");
}

#[test]
fn every_structure_of_every_ftl_is_explained() {
    for info in ftl::ftls::infos() {
        let (spec, _) = prepare(&watch(&["--ftl", info.name, "--logical-ratio", "0.4"])).unwrap();
        for item in Show::new(&spec).unwrap().seen.ram {
            assert!(crate::report::ram::meaning(item.name).is_some(), "{} of {}", item.name, info.name);
        }
    }
}

#[test]
fn a_terminal_of_any_size_can_be_drawn_to() {
    let mut tour = tour(&[]);
    tour.step(StepBy::Chapter).unwrap();
    tour.press(Key::Help).unwrap();
    let replay = replay::Replay::new("page", 1).unwrap();
    for size in [(1, 1), (3, 9), (9, 12), (20, 5), (40, 200), (400, 20)] {
        assert_eq!(text(&tour, size).unwrap().lines().count(), usize::from(size.1) + 1);
        assert_eq!(text(&replay, size).unwrap().lines().count(), usize::from(size.1) + 1);
    }
}

#[test]
fn what_cannot_be_shown_is_refused() {
    for (arguments, part) in [
        (&["--ftl", "gekco"][..], "did you mean `gecko`?"),
        (&["--ftl", "page", "--gecko-t", "4"], "--gecko-t means nothing to page"),
        (&["--workload", "unifrom"], "unifrom"),
        (&["--placement", "fk"], "has to know"),
        (&["--logical-ratio", "0.99"], "ask for"),
    ] {
        let args = watch(arguments);
        let error = prepare(&args).and_then(|(spec, _)| Show::new(&spec).map(drop)).unwrap_err();
        assert_eq!(crate::error::exit_code(&error), 2, "{arguments:?}");
        assert!(crate::error::text(&error).contains(part), "{arguments:?}: {}", crate::error::text(&error));
    }
}
