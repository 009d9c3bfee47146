//! Tables kept beside the tool: mutants written by hand, and survivors that are accepted.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Where the tables are, below the root.
pub const FOLDER: &str = "xtask/mutants";

const BY_HAND: (&str, &[&str]) = ("by-hand.toml", &["mutant", "keep"]);
const SURVIVORS: (&str, &[&str]) = ("survivors.toml", &["survivor"]);

/// A mutant written by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its name, unique in its function.
    pub name: String,
    /// File, below the mutated crate's `src`.
    pub file: String,
    /// Function: `Type::method` or `function`.
    pub function: String,
    /// An expression, or a statement with its `;`, that occurs once in the function.
    pub find: String,
    /// What stands there instead.
    pub replace: String,
}

/// Reads `by-hand.toml`.
///
/// # Errors
/// If it is not there, does not parse, or an entry lacks a field.
pub fn entries(root: &Path) -> Result<Vec<Entry>> {
    let fields = ["name", "file", "function", "find", "replace"];
    let rows = rows(root, BY_HAND, "mutant", &fields)?.into_iter();
    Ok(rows.map(|[name, file, function, find, replace]| Entry { name, file, function, find, replace }).collect())
}

/// Reads the identities that `by-hand.toml` keeps in every whole run.
///
/// # Errors
/// As [`entries`].
pub fn kept(root: &Path) -> Result<Vec<String>> {
    Ok(rows(root, BY_HAND, "keep", &["identity"])?.into_iter().map(|[identity]| identity).collect())
}

/// Reads `survivors.toml`: the accepted ones by identity, each with its reason.
///
/// # Errors
/// As [`entries`].
pub fn accepted(root: &Path) -> Result<BTreeMap<String, String>> {
    let rows = rows(root, SURVIVORS, "survivor", &["identity", "reason"])?.into_iter();
    Ok(rows.map(|[identity, reason]| (identity, reason)).collect())
}

/// The tables `[[table]]` of a file, each with exactly these fields. The file is given with all the
/// tables that it may have.
fn rows<const N: usize>(
    root: &Path,
    (file, tables): (&str, &[&str]),
    table: &str,
    fields: &[&str; N],
) -> Result<Vec<[String; N]>> {
    let path = root.join(FOLDER).join(file);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text, tables, table, fields).with_context(|| format!("{FOLDER}/{file}"))
}

fn parse<const N: usize>(text: &str, tables: &[&str], table: &str, fields: &[&str; N]) -> Result<Vec<[String; N]>> {
    let parsed: toml::Table = toml::from_str(text)?;
    if let Some(other) = parsed.keys().find(|key| !tables.contains(&key.as_str())) {
        anyhow::bail!("there is a key `{other}`; known are tables {}", tables.join(", "));
    }
    let rows = parsed.get(table).and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
    let row = |(n, row): (usize, &toml::Value)| -> Result<[String; N]> {
        let row = row.as_table().with_context(|| format!("[[{table}]] {} is no table", n + 1))?;
        if let Some(other) = row.keys().find(|key| !fields.contains(&key.as_str())) {
            anyhow::bail!("[[{table}]] {} has a key `{other}`; it has {}", n + 1, fields.join(", "));
        }
        let mut values = [const { String::new() }; N];
        for (value, field) in values.iter_mut().zip(fields) {
            let text = row.get(*field).and_then(toml::Value::as_str).filter(|text| !text.trim().is_empty());
            text.with_context(|| format!("[[{table}]] {} has no text `{field}`", n + 1))?.clone_into(value);
        }
        Ok(values)
    };
    rows.iter().enumerate().map(row).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_every_field_and_no_other() {
        let read = |text: &str| {
            parse(text, &["survivor"], "survivor", &["identity", "reason"]).map_err(|error| error.to_string())
        };
        assert_eq!(read("").unwrap(), Vec::<[String; 2]>::new());
        assert_eq!(read("[[survivor]]\nidentity = 'a'\nreason = 'b'").unwrap(), [["a".to_owned(), "b".to_owned()]]);
        assert!(read("[[survivor]]\nidentity = 'a'").unwrap_err().contains("no text `reason`"));
        assert!(read("[[survivor]]\nidentity = 'a'\nreason = ' '").unwrap_err().contains("no text `reason`"));
        assert!(read("[[survivor]]\nid = 'a'").unwrap_err().contains("key `id`"));
        assert!(read("[[mutant]]\nid = 'a'").unwrap_err().contains("key `mutant`"));
    }
}
