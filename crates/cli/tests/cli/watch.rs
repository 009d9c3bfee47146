//! `openftl watch`, with frames as text and in a pseudo-terminal.

use crate::common::{openftl, output_of};

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let ran = openftl(&["watch"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.out.is_empty() && ran.err.contains("--frames 10"), "{}", ran.err);
}

#[test]
fn frames_are_plain_text_and_the_same_again() {
    let arguments = ["watch", "--frames", "3", "--step-by", "collection", "--seed", "5", "--frame-size", "100x40"];
    let text = output_of(&arguments);
    assert_eq!(text, output_of(&arguments));
    assert_eq!(text.lines().count(), 3 * 41);
    assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("Victim  block") && text.contains("Buffer"), "{text}");
}

#[test]
fn a_trace_that_comes_with_the_program_can_be_watched() {
    let text = output_of(&["watch", "sample:git", "--ftl", "page", "--frames", "2"]);
    assert!(text.contains("page, ") && text.contains("translation_table"), "{text}");
}

#[test]
fn a_replay_tells_of_the_cut_and_the_mount() {
    let text = output_of(&["watch", "--replay", "gecko", "--frames", "3", "--step-by", "chapter"]);
    assert!(text.contains("power is cut at operation") && text.contains("mount:"), "{text}");
    for wrong in ["gecko-00", "bast-nothing", "nobody"] {
        let ran = openftl(&["watch", "--replay", wrong, "--frames", "1"]);
        assert_eq!(ran.code, 2, "{wrong}: {}", ran.err);
    }
}

/// What the screen of a terminal shows after each key.
#[cfg(unix)]
mod terminal {
    use rexpect::session::{PtySession, spawn_command};
    use std::num::NonZeroU16;
    use std::process::Command;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    const PATIENCE: Duration = Duration::from_secs(60);
    const LINES: NonZeroU16 = NonZeroU16::new(40).unwrap();
    const COLUMNS: NonZeroU16 = NonZeroU16::new(120).unwrap();

    struct Terminal {
        session: PtySession,
        screen: vt100::Parser,
    }

    impl Terminal {
        fn watch(arguments: &[&str]) -> Self {
            let mut command = Command::new("sh");
            let program = env!("CARGO_BIN_EXE_openftl");
            let line = format!("stty rows {LINES} cols {COLUMNS}; exec {program} watch {}", arguments.join(" "));
            command.args(["-c", &line]).env("TERM", "xterm-256color").env_remove("NO_COLOR");
            let session = spawn_command(command, Some(PATIENCE.as_millis() as u64)).unwrap();
            Self { session, screen: vt100::Parser::new(LINES, COLUMNS, 0) }
        }

        fn press(&mut self, key: &str) {
            self.session.send(key).unwrap();
            self.session.flush().unwrap();
        }

        /// Waits until the screen is as it should be.
        fn shows(&mut self, what: &str, is_so: impl Fn(&vt100::Screen) -> bool) {
            let begun = Instant::now();
            while !is_so(self.screen.screen()) {
                assert!(begun.elapsed() < PATIENCE, "no {what} on:\n{}", self.screen.screen().contents());
                match self.session.try_read() {
                    Some(character) => self.screen.process(character.encode_utf8(&mut [0; 4]).as_bytes()),
                    None => sleep(Duration::from_millis(5)),
                }
            }
        }

        fn shows_text(&mut self, text: &str) {
            self.shows(text, |screen| screen.contents().contains(text));
        }
    }

    #[test]
    fn keys_step_explain_and_quit() {
        let mut terminal = Terminal::watch(&["--ftl", "page"]);
        terminal.shows_text("request 0 ");
        terminal.shows_text("Guide 1/");
        terminal.press("r");
        terminal.shows_text("request 1 ");
        terminal.shows_text("for host");
        terminal.press("?");
        terminal.shows_text("any key goes back");
        terminal.press("o");
        terminal.shows("frame without help", |screen| !screen.contents().contains("any key goes back"));
        terminal.press("n");
        terminal.shows_text("request 12 ");
        terminal.shows_text(": Writing");
        terminal.press("+ ");
        terminal.shows_text("running, 20 operations a second");
        terminal.shows_text("request 13 ");
        terminal.press("q");
        terminal.shows("screen that was there before", |screen| !screen.alternate_screen());
        terminal.session.exp_eof().unwrap();
    }

    #[test]
    fn a_replay_goes_from_event_to_event() {
        let mut terminal = Terminal::watch(&["--replay", "page"]);
        terminal.shows_text("Events 1 to");
        terminal.press("c");
        terminal.shows_text("Power goes in the middle");
        terminal.press("n");
        terminal.shows_text("Power comes back");
        terminal.press("p");
        terminal.shows_text("Power goes in the middle");
        terminal.press("\u{3}");
        terminal.shows("screen that was there before", |screen| !screen.alternate_screen());
        terminal.session.exp_eof().unwrap();
    }
}
