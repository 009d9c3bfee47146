//! Finished runs in a folder, so that what was interrupted goes on and figures share what they have
//! in common.
//!
//! A file holds the result of one run, all its settings as text, and the program that did it: a
//! program built anew takes nothing that another did. Its name is only an index. A file that is not
//! whole, or of something else, is as good as none.

use crate::{content, output};
use anyhow::{Context, Result};
use papers::{Keep, PaperError};
use serde::Deserialize;
use serde_json::json;
use sim::RunResult;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, process};

/// A folder of finished runs.
pub struct Folder {
    path: PathBuf,
    /// A hash of this program's bytes.
    program: String,
    /// Whether only runs done in this call count.
    fresh: bool,
    /// Settings of those.
    done: Mutex<BTreeSet<String>>,
}

/// What a file holds.
#[derive(Deserialize)]
struct File {
    program: String,
    settings: String,
    /// [`RunResult::digest`], so that a digit gone wrong is noticed.
    digest: u64,
    result: RunResult,
}

impl Folder {
    /// The folder `runs` in this one, made if it is not there. `fresh` takes nothing from earlier
    /// calls.
    ///
    /// # Errors
    /// If it cannot be written to, or if this program cannot be read, whose bytes tell it from
    /// others.
    pub fn open(out: &Path, fresh: bool) -> Result<Self> {
        let path = out.join("runs");
        fs::create_dir_all(&path).with_context(|| format!("cannot make the folder {}", path.display()))?;
        let probe = path.join(format!("probe.{}.tmp", process::id()));
        output::write(&probe, "")?;
        fs::remove_file(&probe).with_context(|| format!("cannot remove {}", probe.display()))?;
        Ok(Self { path, program: content::program()?, fresh, done: Mutex::default() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, settings: &str) -> PathBuf {
        self.path.join(format!("{}.json", content::hash(settings.as_bytes())))
    }

    fn text(&self, settings: &str, result: &RunResult) -> serde_json::Result<String> {
        let file = json!({"program": self.program, "settings": settings, "digest": result.digest(), "result": result});
        serde_json::to_string(&file)
    }

    /// The result in the text of a file, if it is of this program and these settings.
    fn result(&self, settings: &str, text: &str) -> Option<RunResult> {
        let file: File = serde_json::from_str(text).ok()?;
        let ours = file.program == self.program && file.settings == settings && file.digest == file.result.digest();
        ours.then_some(file.result)
    }

    fn write(&self, settings: &str, result: &RunResult) -> Result<()> {
        let path = self.file(settings);
        let text = self.text(settings, result).with_context(|| format!("{} cannot be JSON", path.display()))?;
        if self.result(settings, &text).as_ref() != Some(result) {
            // JSON has no form for a number that is infinite or none: such a result is not kept
            // rather than kept as another.
            return Ok(());
        }
        let begun = path.with_extension(format!("{}.tmp", process::id()));
        output::write(&begun, &text)?;
        fs::rename(&begun, &path).with_context(|| format!("cannot write {}", path.display()))?;
        self.done.lock().unwrap_or_else(PoisonError::into_inner).insert(settings.to_owned());
        Ok(())
    }
}

impl Keep for Folder {
    fn find(&self, settings: &str) -> Option<RunResult> {
        if self.fresh && !self.done.lock().unwrap_or_else(PoisonError::into_inner).contains(settings) {
            return None;
        }
        self.result(settings, &fs::read_to_string(self.file(settings)).ok()?)
    }

    fn keep(&self, settings: &str, result: &RunResult) -> Result<(), PaperError> {
        self.write(settings, result).map_err(|error| PaperError::Keep { reason: format!("{error:#}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use papers::{Lab, lab::Shape};
    use sim::{PreconditionMode, RunSpec, TimingMode, WorkloadSpec};

    /// A run with all that a result can hold.
    fn spec() -> RunSpec {
        let device = Lab::default().device("gecko-2tb", Shape::share(1.0 / 65536.0)).unwrap();
        let mut spec = RunSpec::new("gecko", device, WorkloadSpec::synthetic("zipf:theta=0.9,reads=20").unwrap());
        spec.timing = TimingMode::Queued(sim::QueueOptions::default());
        spec.writes = 3000;
        spec.power_cut = true;
        spec
    }

    fn open(folder: &tempfile::TempDir) -> Folder {
        Folder::open(folder.path(), false).unwrap()
    }

    #[test]
    fn a_result_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let spec = spec();
        let text = spec.text().unwrap();
        let result = sim::run(&spec, &mut |_| {}).unwrap();
        assert!(result.mount.is_some() && result.latency_us.is_some() && !result.precondition.windows.is_empty());
        let kept = open(&folder);
        assert_eq!(kept.find(&text), None);
        kept.keep(&text, &result).unwrap();
        let found = open(&folder).find(&text).unwrap();
        assert_eq!(found, result);
        assert_eq!(format!("{found:?}"), format!("{result:?}"));
        assert_eq!(fs::read_dir(kept.path()).unwrap().count(), 1, "nothing is left beside the file");
    }

    #[test]
    fn only_whole_files_of_this_program_and_these_settings_count() {
        let folder = tempfile::tempdir().unwrap();
        let kept = open(&folder);
        let result = RunResult { seed: 7, ..RunResult::default() };
        kept.keep("some", &result).unwrap();
        let path = kept.file("some");
        let whole = fs::read_to_string(&path).unwrap();
        let other = Folder { program: "another".to_owned(), ..open(&folder) };
        assert_eq!(other.find("some"), None);
        fs::rename(&path, kept.file("others")).unwrap();
        assert_eq!(kept.find("others"), None);
        for text in [&whole[..whole.len() / 2], "", "{}", &whole.replace("\"seed\":7", "\"seed\":8")] {
            fs::write(&path, text).unwrap();
            assert_eq!(kept.find("some"), None, "{text}");
            kept.keep("some", &result).unwrap();
            assert_eq!(kept.find("some"), Some(result.clone()));
        }
    }

    #[test]
    fn fresh_takes_what_this_call_did_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let result = RunResult::default();
        open(&folder).keep("some", &result).unwrap();
        let fresh = Folder::open(folder.path(), true).unwrap();
        assert_eq!(fresh.find("some"), None);
        fresh.keep("some", &result).unwrap();
        assert_eq!(fresh.find("some"), Some(result));
    }

    #[test]
    fn a_number_that_json_does_not_hold_is_not_kept_as_another() {
        let folder = tempfile::tempdir().unwrap();
        let kept = open(&folder);
        for number in [f64::NAN, f64::INFINITY] {
            let mut result = RunResult::default();
            result.wear.mean = number;
            kept.keep("some", &result).unwrap();
            assert_eq!(kept.find("some"), None);
        }
    }

    #[test]
    fn settings_differ_with_what_is_set_and_are_none_where_a_file_has_a_part() {
        let text = |change: fn(&mut RunSpec)| {
            let mut spec = spec();
            change(&mut spec);
            spec.text()
        };
        let usual = text(|_| ()).unwrap();
        let changes: [fn(&mut RunSpec); 6] = [
            |spec| spec.seed = 2,
            |spec| spec.config.cache_entries += 1,
            |spec| spec.device.timing.read_ns += 1,
            |spec| spec.device.limits.read_unit_bytes += 1,
            |spec| spec.precondition = PreconditionMode::Fill(0.1 + 0.2),
            |spec| spec.workload = WorkloadSpec::synthetic("profile:msnfs").unwrap(),
        ];
        let texts: BTreeSet<String> = changes.into_iter().map(|change| text(change).unwrap()).chain([usual]).collect();
        assert_eq!(texts.len(), 7);
        assert_eq!(text(|spec| spec.workload = WorkloadSpec::synthetic("profile:my.toml").unwrap()), None);
    }
}
