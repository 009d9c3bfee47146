//! Options as data: what an option is called, what it takes, what it means. Parsing, help and
//! descriptions derive from these rows.

use crate::units::{format_bytes, parse_bytes};
use std::fmt;

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// A percentage between 0 and 100.
    Percent,
    /// A percentage above 0, up to 100.
    Share,
    /// A whole number in the closed range.
    Count(u64, u64),
    /// A number above the first bound, up to the second.
    Number(f64, f64),
    /// Bytes: a size above 0, or `page` for one page of the device.
    Bytes,
    /// A size, or sizes with weights as `4KiB*70+64KiB*30`.
    Sizes,
    /// Percentages above 0 joined by `-`.
    Shares,
    /// Any text without a comma.
    Text,
}

/// One option of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name, as written before `=`.
    pub name: &'static str,
    /// Unit of the value, for help texts.
    pub unit: &'static str,
    /// Value if not given, in the syntax of the option; `None`: the option is off.
    pub default: Option<&'static str>,
    /// What it does, in a line.
    pub meaning: &'static str,
    /// What it takes.
    pub kind: Kind,
}

/// A size that may depend on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// One page of the device.
    Page,
    /// So many bytes.
    Bytes(u64),
}

impl Size {
    pub(crate) fn bytes(self, page_bytes: u32) -> u64 {
        match self {
            Size::Page => u64::from(page_bytes),
            Size::Bytes(bytes) => bytes,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Page => f.write_str("page"),
            Size::Bytes(bytes) => f.write_str(&format_bytes(*bytes)),
        }
    }
}

/// A parsed value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    Count(u64),
    Size(Size),
    Sizes(Vec<(Size, f64)>),
    Shares(Vec<f64>),
    Text(String),
}

impl Value {
    /// Parses `text` as `kind`; the error says what the kind takes.
    pub(crate) fn parse(kind: Kind, text: &str) -> Result<Value, String> {
        match kind {
            Kind::Percent => number(text, "a percentage from 0 to 100", |v| (0.0..=100.0).contains(&v)),
            Kind::Share => number(text, "a percentage above 0, up to 100", |v| v > 0.0 && v <= 100.0),
            Kind::Number(low, high) => {
                number(text, &format!("a number above {low}, up to {high}"), |v| v > low && v <= high)
            }
            Kind::Count(low, high) => match text.parse::<u64>() {
                Ok(v) if (low..=high).contains(&v) => Ok(Value::Count(v)),
                _ => Err(format!("it takes a whole number from {low} to {high}")),
            },
            Kind::Bytes => size(text).map(Value::Size),
            Kind::Sizes => sizes(text),
            Kind::Shares => shares(text),
            Kind::Text if text.is_empty() => Err("it takes a name".to_owned()),
            Kind::Text => Ok(Value::Text(text.to_owned())),
        }
    }
}

fn number(text: &str, takes: &str, legal: impl Fn(f64) -> bool) -> Result<Value, String> {
    match text.strip_suffix('%').unwrap_or(text).parse::<f64>() {
        Ok(v) if legal(v) => Ok(Value::Number(v)),
        _ => Err(format!("it takes {takes}")),
    }
}

fn size(text: &str) -> Result<Size, String> {
    if text == "page" {
        return Ok(Size::Page);
    }
    match parse_bytes(text)? {
        0 => Err("a size is at least one byte".to_owned()),
        bytes => Ok(Size::Bytes(bytes)),
    }
}

fn sizes(text: &str) -> Result<Value, String> {
    let mut list = Vec::new();
    for part in text.split('+') {
        let (bytes, weight) = part.split_once('*').unwrap_or((part, "1"));
        let weight: f64 = weight.parse().map_err(|_| format!("`{weight}` is not a weight"))?;
        if !(weight > 0.0 && weight <= 1e9) {
            return Err("a weight is above 0, up to 1e9".to_owned());
        }
        list.push((size(bytes)?, weight));
    }
    if let [(_, weight)] = &mut list[..] {
        // The weight of a lone size says nothing; equal workloads must compare equal.
        *weight = 1.0;
    }
    Ok(Value::Sizes(list))
}

fn shares(text: &str) -> Result<Value, String> {
    text.split('-')
        .map(|part| match part.parse::<f64>() {
            Ok(v) if v > 0.0 && v <= 100.0 => Ok(v),
            _ => Err("it takes percentages above 0, up to 100, joined by `-`".to_owned()),
        })
        .collect::<Result<_, _>>()
        .map(Value::Shares)
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(v) => write!(f, "{v}"),
            Value::Count(v) => write!(f, "{v}"),
            Value::Size(v) => write!(f, "{v}"),
            Value::Text(v) => f.write_str(v),
            Value::Sizes(list) => {
                for (i, (size, weight)) in list.iter().enumerate() {
                    let plus = if i == 0 { "" } else { "+" };
                    match list.len() {
                        1 => write!(f, "{size}")?,
                        _ => write!(f, "{plus}{size}*{weight}")?,
                    }
                }
                Ok(())
            }
            Value::Shares(list) => {
                let parts: Vec<String> = list.iter().map(f64::to_string).collect();
                f.write_str(&parts.join("-"))
            }
        }
    }
}
