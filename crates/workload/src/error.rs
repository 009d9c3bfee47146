//! Everything that can go wrong, with the place and the way out.

use std::path::PathBuf;

/// Why a workload, trace or profile cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// No workload, trace format or profile has this name.
    #[error("there is no {what} `{name}`{}; known are: {valid}", hint(.nearest))]
    Unknown {
        /// "workload", "trace format", "profile" …
        what: &'static str,
        /// What was asked for.
        name: String,
        /// The closest known name, if one is close.
        nearest: Option<String>,
        /// All known names.
        valid: String,
    },
    /// The workload exists but does not have this option.
    #[error("workload `{workload}` has no option `{option}`{}; it takes: {valid}", hint(.nearest))]
    UnknownOption {
        /// The workload.
        workload: &'static str,
        /// The option that was given.
        option: String,
        /// The closest known option, if one is close.
        nearest: Option<String>,
        /// All options of the workload.
        valid: String,
    },
    /// An option has a value it cannot take.
    #[error("option `{option}` cannot be `{value}`: {why}")]
    BadValue {
        /// The option.
        option: String,
        /// The value as given.
        value: String,
        /// What the option takes.
        why: String,
    },
    /// The text is not `name:option=value,option=value`.
    #[error("`{text}` is not a workload: {why}; write it as in `zipf:theta=0.99,reads=30`")]
    Syntax {
        /// The text as given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// Options that are legal one by one exclude each other.
    #[error("the options of `{workload}` contradict each other: {why}")]
    Contradiction {
        /// The workload.
        workload: String,
        /// Which, and what to change.
        why: String,
    },
    /// The workload or trace does not fit the device.
    #[error("{what} does not fit the device: {why}")]
    DoesNotFit {
        /// The workload or trace.
        what: String,
        /// The numbers, and what to change.
        why: String,
    },
    /// A form of traces cannot express a trace.
    #[error("{trace} cannot be written in this form: {why}")]
    NotExpressible {
        /// The trace.
        trace: String,
        /// What the form lacks, and which to take.
        why: String,
    },
    /// A file cannot be opened, read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// "open", "read", "decompress" …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line of a text trace is not of the trace's format.
    #[error("{file}:{line}: not a line of format `{format}`: {why}: `{text}`")]
    Line {
        /// The file.
        file: String,
        /// Line number, from 1.
        line: u64,
        /// The format read.
        format: &'static str,
        /// What is wrong.
        why: String,
        /// The line, shortened if it is long.
        text: String,
    },
    /// A binary trace stops or breaks in mid-record.
    #[error("{file}: byte {offset}: not a record of format `{format}`: {why}")]
    Record {
        /// The file.
        file: String,
        /// Offset of the record's first byte in the uncompressed file.
        offset: u64,
        /// The format read.
        format: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The file is of no known format.
    #[error("{file} is of no known trace format ({why}); name one of: {valid}")]
    Undetected {
        /// The file.
        file: String,
        /// What was seen.
        why: String,
        /// All formats.
        valid: String,
    },
    /// An option states what every file of the trace's format says, or what it has no column for.
    #[error(
        "{file} is of format `{format}`, of which the {what} is known: leave it out, or name another format; it is asked for \
         in {asking}"
    )]
    SaidByFormat {
        /// The file.
        file: String,
        /// The format read.
        format: &'static str,
        /// What was stated.
        what: &'static str,
        /// The formats that leave it open.
        asking: String,
    },
    /// A trace holds no request, or none is left.
    #[error("{file} holds no request to replay: {why}")]
    Empty {
        /// The file.
        file: String,
        /// Why: nothing in it, or everything filtered away.
        why: String,
    },
    /// A profile is not valid TOML, or its numbers make no sense.
    #[error("profile {name}: {why}")]
    Profile {
        /// Name or file of the profile.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |n| format!(", did you mean `{n}`?"))
}

/// The candidate closest to `given` by edit distance, if it is close enough to be a slip.
pub(crate) fn nearest<'a>(given: &str, valid: impl Iterator<Item = &'a str>) -> Option<String> {
    let given: Vec<char> = given.chars().take(64).collect();
    valid
        .map(|name| (edit_distance(&given, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3)
        .min()
        .map(|(_, name)| name.to_owned())
}

fn edit_distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], cost);
        }
    }
    row[b.len()]
}
