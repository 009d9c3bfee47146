//! What is kept of each run: a line of JSON, and a flat row of CSV.

use crate::report::ram_total;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sim::RunResult;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The form of a line. Its number rises when a field changes its meaning or goes away.
pub const SCHEMA: &str = "openftl-sweep/1";

/// A run that has ended, as a line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub openftl: String,
    /// Hash of the program.
    pub program: String,
    /// What was varied, by option.
    pub varied: BTreeMap<String, String>,
    /// The comparison of this run alone.
    pub command: String,
    /// What the run was told, with every default; null if it could not be made.
    pub settings: Value,
    /// Why it failed.
    pub failed: Option<String>,
    /// [`RunResult::digest`], so that a digit gone wrong is noticed.
    pub digest: Option<u64>,
    /// What came out.
    pub result: Option<RunResult>,
}

impl Row {
    /// Whether it is of this program and these settings, done and unharmed.
    pub fn is_of(&self, program: &str, settings: &Value) -> bool {
        let whole = self.result.as_ref().is_some_and(|result| self.digest == Some(result.digest()));
        whole && self.schema == SCHEMA && self.program == program && self.settings == *settings
    }

    /// Its values by column: what was varied, what came out, and all settings.
    pub fn flat(&self) -> Vec<(String, Value)> {
        let mut columns: Vec<(String, Value)> =
            self.varied.iter().map(|(name, value)| (name.replace('-', "_"), json!(value))).collect();
        columns.push(("failed".to_owned(), json!(self.failed)));
        columns.extend(self.result.iter().flat_map(measures));
        let mut settings = Vec::new();
        flatten("settings", &self.settings, &mut settings);
        columns.extend(settings);
        columns
    }
}

/// What came out of a run, by name.
pub fn measures(result: &RunResult) -> Vec<(String, Value)> {
    let wa = &result.write_amplification;
    let mut all = vec![
        ("host_writes".to_owned(), json!(result.host.writes)),
        ("host_reads".to_owned(), json!(result.host.reads)),
        ("host_trims".to_owned(), json!(result.host.trims)),
        ("write_amplification".to_owned(), json!(wa.programs_per_write)),
        ("write_amplification_with_reads".to_owned(), json!(wa.paper)),
    ];
    for (purpose, part) in wa.by_purpose.iter() {
        all.push((format!("write_amplification_{}", purpose.name()), json!(part.programs)));
    }
    all.extend([
        ("ram_bytes".to_owned(), json!(ram_total(result))),
        ("erases".to_owned(), json!(result.wear.erases_total)),
        ("erases_max".to_owned(), json!(result.wear.max)),
        ("erases_mean".to_owned(), json!(result.wear.mean)),
        ("erases_stddev".to_owned(), json!(result.wear.stddev)),
        ("steady".to_owned(), json!(result.precondition.steady)),
    ]);
    if let Some(throughput) = &result.throughput {
        all.push(("iops".to_owned(), json!(throughput.iops)));
        all.push(("die_utilisation".to_owned(), json!(throughput.die_utilisation)));
    }
    if let Some(latency) = &result.latency_us {
        for (kind, of) in [("read", &latency.read), ("write", &latency.write)] {
            let points = [
                ("mean", of.mean),
                ("p50", of.p50),
                ("p99", of.p99),
                ("p999", of.p999),
                ("p9999", of.p9999),
                ("max", of.max),
            ];
            all.extend(points.map(|(point, us)| (format!("{kind}_{point}_us"), json!(us))));
        }
    }
    all
}

fn flatten(name: &str, value: &Value, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(field, value)| flatten(&format!("{name}.{field}"), value, out))
        }
        other => out.push((name.to_owned(), other.clone())),
    }
}

/// All rows under one header (RFC 4180). A column that a row does not have is empty.
pub fn csv(rows: &[Row]) -> String {
    let flat: Vec<Vec<(String, Value)>> = rows.iter().map(Row::flat).collect();
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in flat.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let mut out = columns.join(",") + "\n";
    for row in &flat {
        let values: Map<String, Value> = row.iter().cloned().collect();
        let cells: Vec<String> = columns.iter().map(|name| values.get(*name).map(cell).unwrap_or_default()).collect();
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.contains(['"', ',', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// A file of rows to which runs are added as they end.
pub struct Rows {
    path: PathBuf,
    file: Mutex<File>,
}

impl Rows {
    /// Begins a file, or goes on with one that is there; the rows of it. A last line that was cut
    /// off is removed.
    ///
    /// # Errors
    /// If there is a file and it is not to be gone on with, or if a line of it is no row.
    pub fn open(path: &Path, resume: bool) -> Result<(Self, Vec<Row>)> {
        let cannot = || format!("cannot write {}", path.display());
        let begun = OpenOptions::new().read(true).append(true).create_new(!resume).create(resume).open(path);
        let mut file = match begun {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(
                "{} is there already; add --resume to go on with it, or name another file with --out",
                path.display()
            ),
            begun => begun.with_context(cannot)?,
        };
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut rows = Vec::new();
        for (number, line) in (1..).zip(text[..whole].lines()) {
            let row = serde_json::from_str(line)
                .with_context(|| format!("{} line {number} is no run of a sweep; name another file", path.display()))?;
            rows.push(row);
        }
        if whole < text.len() {
            file.set_len(whole as u64).with_context(cannot)?;
            file.seek(std::io::SeekFrom::End(0)).with_context(cannot)?;
        }
        Ok((Self { path: path.to_owned(), file: Mutex::new(file) }, rows))
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&self, row: &Row) -> Result<()> {
        let mut line = serde_json::to_string(row).context("a run cannot be written as JSON")?;
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn row(seed: u64) -> Row {
        let result = samples::run("gecko", 0.8, 0.2, seed, true);
        Row {
            schema: SCHEMA.to_owned(),
            openftl: "0".to_owned(),
            program: "p".to_owned(),
            varied: [("logical-ratio".to_owned(), "0.7".to_owned())].into(),
            command: "openftl compare, \"so\"".to_owned(),
            settings: json!({"ftl": "gecko", "config": {"victim": "a,b"}}),
            failed: None,
            digest: Some(result.digest()),
            result: Some(result),
        }
    }

    #[test]
    fn a_file_goes_on_after_its_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let (rows, before) = Rows::open(&path, false).unwrap();
        assert!(before.is_empty());
        rows.add(&row(1)).unwrap();
        drop(rows);
        assert!(Rows::open(&path, false).err().unwrap().to_string().contains("--resume"));
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "{\"schema\": \"cut").unwrap();
        let (rows, before) = Rows::open(&path, true).unwrap();
        assert_eq!(before, [row(1)]);
        rows.add(&row(2)).unwrap();
        assert_eq!(Rows::open(&path, true).unwrap().1, [row(1), row(2)]);
        std::fs::write(&path, "{}\n").unwrap();
        assert!(Rows::open(&path, true).err().unwrap().to_string().contains("line 1 is no run"));
    }

    #[test]
    fn only_whole_rows_of_this_program_and_these_settings_count() {
        let whole = row(1);
        assert!(whole.is_of("p", &whole.settings));
        assert!(!whole.is_of("q", &whole.settings) && !whole.is_of("p", &json!({})));
        let other_digit = Row { digest: whole.digest.map(|digest| digest ^ 1), ..whole.clone() };
        let failed = Row { result: None, failed: Some("so".into()), ..whole.clone() };
        let other_form = Row { schema: "openftl-sweep/0".into(), ..whole.clone() };
        assert!([other_digit, failed, other_form].iter().all(|row| !row.is_of("p", &row.settings)));
    }

    #[test]
    fn rows_have_the_same_columns_in_csv() {
        let failed = Row { result: None, digest: None, failed: Some("it, \"so\" to say".into()), ..row(1) };
        let text = csv(&[row(2), failed]);
        let lines: Vec<&str> = text.lines().collect();
        let at = |name: &str| lines[0].split(',').position(|column| column == name).unwrap();
        assert_eq!((lines.len(), at("logical_ratio"), at("failed")), (3, 0, 1));
        assert!(lines[2].starts_with("0.7,\"it, \"\"so\"\" to say\",,"), "{}", lines[2]);
        assert!(lines[2].ends_with(",\"a,b\",gecko"), "{}", lines[2]);
        let cells: Vec<&str> = lines[1].split(',').collect();
        assert_eq!(cells[at("host_writes")], row(2).result.unwrap().host.writes.to_string());
        assert!(lines[0].contains("settings.config.victim"));
    }
}
