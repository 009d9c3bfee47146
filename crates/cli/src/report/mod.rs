//! A comparison as people and programs read it: a text table, a JSON object, an HTML page.

pub mod buffered;
pub mod findings;
pub mod html;
pub mod json;
pub mod ram;
pub mod resolved;
pub mod table;
pub mod text;

use ftl::Purpose;
use serde::Serialize;
use sim::RunResult;

/// What was compared, and what came out.
pub struct Report {
    /// The command line that repeats it.
    pub command: String,
    /// The device, in words.
    pub device: String,
    /// The workload, as its source describes it.
    pub workload: String,
    /// How the device was preconditioned and the runs ended, in words.
    pub method: String,
    /// All randomness follows from it.
    pub seed: u64,
    /// Guesses and choices made on the user's behalf, in sentences.
    pub notes: Vec<String>,
    /// Options that were given and did not concern every FTL.
    pub not_taken: Vec<NotTaken>,
    /// What each run was told, with every default.
    pub settings: Vec<serde_json::Value>,
    /// One for each run, in the order asked for.
    pub results: Vec<RunResult>,
}

/// Options that mean nothing to some of the FTLs, which ran without them.
#[derive(Clone, Debug, Serialize)]
pub struct NotTaken {
    /// The options as they are typed, without their values.
    pub options: Vec<&'static str>,
    /// The FTLs.
    pub ftls: Vec<&'static str>,
}

impl NotTaken {
    /// In a sentence.
    pub fn sentence(&self) -> String {
        let (options, ftls) = (self.options.join(", "), self.ftls.join(", "));
        let mean = if self.options.len() == 1 { "means" } else { "mean" };
        let run = if self.ftls.len() == 1 { "runs" } else { "run" };
        format!("{options} {mean} nothing to {ftls}, which {run} without")
    }
}

/// What a purpose means to a reader who sees it for the first time.
pub fn meaning(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Host => "the page the host wrote or read",
        Purpose::Gc => "garbage collection: moving host data out of a block before it is erased",
        Purpose::Translation => "reading and writing map pages kept in flash",
        Purpose::TranslationGc => "moving map pages out of a block before it is erased",
        Purpose::Validity => "recording in flash which pages are dead",
        Purpose::ValidityQuery => "asking flash which pages of a victim are dead",
        Purpose::ValidityGc => "moving pages of that record before a block is erased",
        Purpose::Checkpoint => "saving state so that recovery after power loss is short",
        Purpose::Recovery => "rebuilding state after power loss",
        Purpose::Wear => "moving data so that blocks wear evenly",
        Purpose::Refresh => "moving data in time that can barely be read any more",
    }
}

/// The purposes for which any run did anything.
pub fn purposes_in_use(results: &[RunResult]) -> Vec<Purpose> {
    let used = |purpose: &Purpose| {
        results.iter().any(|result| {
            let flash = result.flash.get(*purpose);
            flash.reads + flash.spare_reads + flash.programs + flash.erases + flash.flag_programs > 0
        })
    };
    Purpose::ALL.into_iter().filter(used).collect()
}

/// Structures of a run in RAM, the largest first, without the total.
pub fn structures(result: &RunResult) -> Vec<(&str, u64)> {
    let mut list: Vec<(&str, u64)> = result
        .ram_bytes
        .iter()
        .filter(|(name, bytes)| name.as_str() != "total" && **bytes > 0)
        .map(|(name, bytes)| (name.as_str(), *bytes))
        .collect();
    list.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    list
}

/// RAM of all structures of a run.
pub fn ram_total(result: &RunResult) -> u64 {
    result.ram_bytes.get("total").copied().unwrap_or_default()
}

#[cfg(test)]
pub mod samples;
