//! Runs one program of tests in the copy, with an end to its patience.

use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Memory that a run may take; a mutant can make a loop allocate for ever.
const KIBIBYTES: u64 = 6 << 20;
/// Wall-clock time over processor time: other work on the machine is no reason to take a mutant for
/// killed.
const WALL: u32 = 200;
/// The signals of a process that used up its processor time.
const LATE: [i32; 2] = [9, 24];

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every test passed.
    Passed,
    /// A test failed, or the process died.
    Failed,
    /// It took more than its time.
    TimedOut,
}

/// What to run.
pub struct Run<'a> {
    /// The program.
    pub executable: &'a Path,
    /// Where its package is.
    pub folder: &'a Path,
    /// Its tests by name.
    pub tests: &'a [&'a str],
    /// Variables of the environment.
    pub environment: &'a [(&'a str, String)],
    /// Processor time that it may take.
    pub limit: Duration,
    /// Whether the time that it takes is to be processor time: for a run that is not expected to
    /// fail.
    pub measured: bool,
}

/// What a run's output says.
enum Said {
    /// A test failed.
    Failed,
    /// Its last line, when it ended.
    Last(String),
}

impl Run<'_> {
    /// Runs it, up to the first test that fails. Returns how it ended and after what time.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run(&self) -> Result<(End, Duration)> {
        let start = Instant::now();
        // A shell sets the limits that the standard library cannot; it then is the program, or
        // tells the time.
        let seconds = self.limit.as_secs_f64().ceil() as u64;
        let program = if self.measured { "\"$0\" \"$@\" && times" } else { "exec \"$0\" \"$@\"" };
        // Some shells take one limit at a time.
        let script = format!("ulimit -t {seconds}; ulimit -v {KIBIBYTES} 2>/dev/null; {program}");
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(script)
            .arg(self.executable)
            .args(["--exact", "--test-threads=1"])
            .args(self.tests)
            .current_dir(self.folder)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            // The same cases each time, and none kept for the next run.
            .env("PROPTEST_RNG_SEED", "1")
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", self.executable.display()))?;
        let (end, last) = self.watch(&mut child, start);
        let exit = child.wait().context("the run cannot be waited for")?;
        let end = match end {
            End::Passed if exit.signal().is_some_and(|signal| LATE.contains(&signal)) => End::TimedOut,
            End::Passed if !exit.success() => End::Failed,
            end => end,
        };
        let took = if self.measured { processor_time(&last) } else { None }.unwrap_or_else(|| start.elapsed());
        Ok((end, took))
    }

    /// Reads what it prints until a test fails, it ends or its time is up; then it is dead or ends
    /// by itself. Returns also the last line, if it was read.
    fn watch(&self, child: &mut Child, start: Instant) -> (End, String) {
        let (sender, receiver) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut last = String::new();
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if line.ends_with("FAILED") {
                        // The receiver is gone when enough was read.
                        let _ = sender.send(Said::Failed);
                    }
                    last = line;
                }
                let _ = sender.send(Said::Last(last));
            });
        }
        let left = (self.limit * WALL).saturating_sub(start.elapsed());
        let end = match receiver.recv_timeout(left) {
            Ok(Said::Last(last)) => return (End::Passed, last),
            Ok(Said::Failed) => End::Failed,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => End::TimedOut,
        };
        // It may have ended by itself in between.
        let _ = child.kill();
        (end, String::new())
    }
}

/// What the last line of the shell's `times` says of the processes that it started:
/// `0m1.25s 0m0.03s`.
fn processor_time(line: &str) -> Option<Duration> {
    let one = |text: &str| {
        let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
        let seconds: f64 = seconds.replace(',', ".").parse().ok()?;
        Duration::try_from_secs_f64(minutes.parse::<f64>().ok()? * 60.0 + seconds).ok()
    };
    let (user, system) = line.split_once(' ')?;
    Some(one(user)? + one(system)?)
}

/// The names of a program's tests.
///
/// # Errors
/// If it cannot be run.
pub fn list(executable: &Path) -> Result<Vec<String>> {
    let output = Command::new(executable).args(["--list", "--format=terse"]).stderr(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {}", executable.display()))?;
    let lines = String::from_utf8_lossy(&output.stdout);
    Ok(lines.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// The FTLs that the explorer of the copy knows.
///
/// # Errors
/// If it cannot be run, or names none.
pub fn ftls(executable: &Path) -> Result<Vec<String>> {
    let output = Command::new(executable).args(["--exact", "ftls", "--nocapture"]).stderr(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {}", executable.display()))?;
    let lines = String::from_utf8_lossy(&output.stdout);
    let names: Vec<String> = lines.lines().filter_map(|line| line.strip_prefix("FTL ")).map(str::to_owned).collect();
    anyhow::ensure!(!names.is_empty(), "{} names no FTLs", executable.display());
    Ok(names)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn end(script: &str, limit: Duration) -> End {
        let folder = std::env::temp_dir();
        let run =
            Run { executable: Path::new("sh"), folder: &folder, tests: &[], environment: &[], limit, measured: false };
        let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let (end, _) = run.watch(&mut child, Instant::now());
        child.wait().unwrap();
        end
    }

    #[test]
    fn the_first_failure_ends_a_run_and_so_does_the_clock() {
        assert_eq!(end("echo test a ... ok", Duration::from_secs(9)), End::Passed);
        assert_eq!(end("echo test a ... FAILED; exec sleep 60", Duration::from_secs(9)), End::Failed);
        assert_eq!(end("exec sleep 60", Duration::from_millis(9)), End::TimedOut);
    }

    #[test]
    fn a_run_that_never_ends_uses_up_its_processor_time() {
        let folder = std::env::temp_dir().join(format!("openftl-endless-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let executable = folder.join("endless");
        std::fs::write(&executable, "#!/bin/sh\nwhile :; do :; done\n").unwrap();
        std::fs::set_permissions(&executable, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (start, limit) = (Instant::now(), Duration::from_secs(1));
        let run =
            Run { executable: &executable, folder: &folder, tests: &[], environment: &[], limit, measured: false };
        assert_eq!(run.run().unwrap().0, End::TimedOut);
        assert!(start.elapsed() < limit * WALL / 2, "only the clock on the wall ended it");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_time_of_the_processor_is_read() {
        assert_eq!(processor_time("1m2.50s 0m0.25s"), Some(Duration::from_millis(62_750)));
        assert_eq!(processor_time("test result: ok"), None);
    }
}
