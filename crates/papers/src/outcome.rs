//! What a figure comes to, as data.

use crate::verdict::Verdict;
use serde::Serialize;

/// Everything that the page of a figure shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Device, workload and method, in sentences.
    pub setup: Vec<String>,
    /// What the paper claims and what came out.
    pub verdicts: Vec<Verdict>,
    /// The figure.
    pub charts: Vec<Chart>,
    /// Its numbers.
    pub tables: Vec<DataTable>,
    /// What a reader has to know beside, in sentences.
    pub remarks: Vec<String>,
}

/// A value of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A word.
    Text(String),
    /// A number in the column's unit.
    Number(f64),
    /// Not known, or not asked.
    Empty,
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Number(value as f64)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Empty, Into::into)
    }
}

/// Rows of data; one CSV file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DataTable {
    /// Part of the file's name; empty for the main table of a figure.
    pub name: String,
    /// What it holds.
    pub title: String,
    /// Columns, with their units.
    pub columns: Vec<String>,
    /// One cell a column.
    pub rows: Vec<Vec<Cell>>,
}

impl DataTable {
    /// A table without rows.
    #[must_use]
    pub fn new(name: &str, title: &str, columns: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, one cell a column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }
}

/// A drawing; one SVG file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Chart {
    /// Lines over a common x.
    Lines(Lines),
    /// Horizontal stacked bars.
    Bars {
        /// Part of the file's name; empty for the main chart.
        name: String,
        /// What it shows.
        title: String,
        /// What lengths are, with their unit.
        axis: String,
        /// From top to bottom.
        bars: Vec<Bar>,
    },
}

/// A line chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lines {
    /// Part of the file's name; empty for the main chart.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Label of the x axis, with its unit.
    pub x: String,
    /// Label of the y axis, with its unit.
    pub y: String,
    /// Whether x values lie by their logarithm.
    pub log_x: bool,
    /// Whether y values lie by their logarithm.
    pub log_y: bool,
    /// The lines.
    pub series: Vec<Series>,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// What it is.
    pub label: String,
    /// Points by rising x.
    pub points: Vec<(f64, f64)>,
}

/// A bar.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bar {
    /// What it is.
    pub label: String,
    /// Its parts from the left.
    pub parts: Vec<Part>,
}

/// A part of a bar. Parts of the same label have the same fill.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Part {
    /// What it is.
    pub label: String,
    /// How long.
    pub value: f64,
}

impl Part {
    /// A part.
    #[must_use]
    pub fn new(label: &str, value: f64) -> Self {
        Self { label: label.to_owned(), value }
    }
}
