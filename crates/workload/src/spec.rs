//! A synthetic workload as text: `name:option=value,option=value`.

use crate::error::{WorkloadError, nearest};
use crate::param::{Kind, Parameter, Size, Value};
use crate::profile::{Profile, published};
use crate::request::Source;
use crate::synthetic::{Room, WorkloadEntry, common_parameters, workloads};
use std::fmt;
use std::str::FromStr;

/// Largest logical space a workload is built for.
const LOGICAL_BYTES_MAX: u64 = 1 << 62;

/// A parsed, checked workload, such as `zipf:theta=0.99,reads=30,size=4KiB,trims=1`.
///
/// `Display` prints the canonical form: options in the order of the tables, those at their default
/// left out. It parses back to an equal spec. [`Source::describe`] of what is built spells the
/// defaults out.
#[derive(Clone)]
pub struct Spec {
    entry: &'static WorkloadEntry,
    /// One place for each parameter of the entry, then of the common table.
    values: Vec<Option<Value>>,
}

impl Spec {
    /// The row of the table this workload comes from.
    pub fn entry(&self) -> &'static WorkloadEntry {
        self.entry
    }

    /// Builds the generator for a logical space of `logical_bytes` on a device with pages of
    /// `page_bytes`.
    ///
    /// # Errors
    /// If the requests do not fit the space, if options contradict each other, or if a profile
    /// cannot be read.
    pub fn build(&self, logical_bytes: u64, page_bytes: u32, seed: u64) -> Result<Box<dyn Source>, WorkloadError> {
        self.build_room(Room { logical_bytes, page_bytes, seed, one_pass: false })
    }

    fn build_room(&self, room: Room) -> Result<Box<dyn Source>, WorkloadError> {
        if room.page_bytes == 0 {
            return Err(self.unfit("a page of the device has 0 bytes"));
        }
        if room.logical_bytes > LOGICAL_BYTES_MAX {
            return Err(self.unfit("the logical space is above 4 EiB, out of which sums of addresses overflow"));
        }
        (self.entry.build)(self, room)
    }

    /// Whether its requests are those of a pass, played over and over: those of a fitted profile.
    pub fn has_passes(&self) -> bool {
        let profile = (self.entry.name == "profile").then(|| self.name("name").map(Profile::load));
        profile.flatten().is_some_and(|profile| profile.is_ok_and(|profile| profile.has_passes()))
    }

    /// Like [`Spec::build`], but the requests end with the first pass if the workload
    /// [has passes](Spec::has_passes).
    ///
    /// # Errors
    /// Those of [`Spec::build`].
    pub fn build_pass(&self, logical_bytes: u64, page_bytes: u32, seed: u64) -> Result<Box<dyn Source>, WorkloadError> {
        self.build_room(Room { logical_bytes, page_bytes, seed, one_pass: true })
    }

    /// All options with their values, defaults spelled out.
    pub fn full(&self) -> String {
        self.text(|_, _| true)
    }

    /// Whether its text says all: no file has a part in the requests, as it has in those of a
    /// profile that was not published.
    pub fn says_all(&self) -> bool {
        self.name("name").is_none_or(|name| published().iter().any(|(known, _)| *known == name))
    }

    /// How many of so many pages are written at which rate, in classes of (pages, share of the
    /// writes), if pages are written whole and independently of each other: those of `uniform`,
    /// `zipf` and `hotcold`, unless options make it otherwise. Ranks of Zipf's law are in classes
    /// that grow by a 256th.
    pub fn write_rates(&self, pages: u64) -> Option<Vec<(f64, f64)>> {
        let whole = self.sizes("size").is_none_or(|sizes| matches!(sizes, [(Size::Page, _)]));
        if !whole || self.number("trims") != Some(0.0) || self.number("footprint") != Some(100.0) || pages == 0 {
            return None;
        }
        match self.entry.name {
            "uniform" => Some(vec![(pages as f64, 1.0)]),
            "hotcold" => {
                let hot = pages as f64 * self.number("space")? / 100.0;
                let writes = self.number("writes")? / 100.0;
                Some(vec![(hot, writes), (pages as f64 - hot, 1.0 - writes)])
            }
            "zipf" => {
                let theta = self.number("theta")?;
                let (mut classes, mut first) = (Vec::new(), 1_u64);
                while first <= pages {
                    let end = (first + (first / 256).max(1)).min(pages + 1);
                    let share = (first..end).map(|rank| (rank as f64).powf(-theta)).sum::<f64>();
                    classes.push(((end - first) as f64, share));
                    first = end;
                }
                Some(classes)
            }
            _ => None,
        }
    }

    pub(crate) fn contradiction(&self, why: impl Into<String>) -> WorkloadError {
        WorkloadError::Contradiction { workload: self.to_string(), why: why.into() }
    }

    pub(crate) fn unfit(&self, why: impl Into<String>) -> WorkloadError {
        WorkloadError::DoesNotFit { what: format!("workload `{self}`"), why: why.into() }
    }

    pub(crate) fn bad(&self, option: &str, why: impl Into<String>) -> WorkloadError {
        let value = self.value(option).map(Value::to_string).unwrap_or_default();
        WorkloadError::BadValue { option: option.to_owned(), value, why: why.into() }
    }

    /// The value of `option`, default included; `None` if the option is off or not taken by this
    /// workload.
    pub(crate) fn value(&self, option: &str) -> Option<&Value> {
        let place = parameters(self.entry).position(|p| p.name == option)?;
        self.values[place].as_ref()
    }

    pub(crate) fn number(&self, option: &str) -> Option<f64> {
        match self.value(option)? {
            Value::Number(v) => Some(*v),
            _ => None,
        }
    }

    pub(crate) fn count(&self, option: &str) -> Option<u64> {
        match self.value(option)? {
            Value::Count(v) => Some(*v),
            _ => None,
        }
    }

    pub(crate) fn size(&self, option: &str) -> Option<Size> {
        match self.value(option)? {
            Value::Size(v) => Some(*v),
            _ => None,
        }
    }

    pub(crate) fn sizes(&self, option: &str) -> Option<&[(Size, f64)]> {
        match self.value(option)? {
            Value::Sizes(v) => Some(v),
            _ => None,
        }
    }

    pub(crate) fn shares(&self, option: &str) -> Option<&[f64]> {
        match self.value(option)? {
            Value::Shares(v) => Some(v),
            _ => None,
        }
    }

    pub(crate) fn name(&self, option: &str) -> Option<&str> {
        match self.value(option)? {
            Value::Text(v) => Some(v),
            _ => None,
        }
    }

    fn text(&self, wanted: impl Fn(&Parameter, &Value) -> bool) -> String {
        let mut text = self.entry.name.to_owned();
        let mut joint = ':';
        for (parameter, value) in parameters(self.entry).zip(&self.values) {
            let Some(value) = value else { continue };
            if !wanted(parameter, value) {
                continue;
            }
            text.push(joint);
            joint = ',';
            // A positional option is written without its name.
            let plain = matches!(value, Value::Text(text) if !text.contains('='));
            if !plain {
                text.push_str(parameter.name);
                text.push('=');
            }
            text.push_str(&value.to_string());
        }
        text
    }

    fn set(&mut self, option: &str, text: &str) -> Result<(), WorkloadError> {
        let entry = self.entry;
        let Some(place) = parameters(entry).position(|p| p.name == option) else {
            let valid: Vec<&str> = parameters(entry).map(|p| p.name).collect();
            return Err(WorkloadError::UnknownOption {
                workload: entry.name,
                option: option.to_owned(),
                nearest: nearest(option, valid.iter().copied()),
                valid: valid.join(", "),
            });
        };
        let kind = parameters(entry).nth(place).map_or(Kind::Text, |p| p.kind);
        let bad = |why| WorkloadError::BadValue { option: option.to_owned(), value: text.to_owned(), why };
        self.values[place] = Some(Value::parse(kind, text).map_err(bad)?);
        Ok(())
    }
}

/// The entry's own parameters, then those common ones it takes.
fn parameters(entry: &'static WorkloadEntry) -> impl Iterator<Item = &'static Parameter> {
    let common = common_parameters().iter().filter(|p| entry.takes_common(p.name));
    entry.parameters.iter().chain(common)
}

fn default_of(parameter: &Parameter) -> Option<Value> {
    parameter.default.and_then(|text| Value::parse(parameter.kind, text).ok())
}

impl FromStr for Spec {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let syntax = |why: String| WorkloadError::Syntax { text: text.to_owned(), why };
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        let Some(entry) = workloads().iter().find(|e| e.name == name) else {
            let valid: Vec<&str> = workloads().iter().map(|e| e.name).collect();
            return Err(WorkloadError::Unknown {
                what: "workload",
                name: name.to_owned(),
                nearest: nearest(name, valid.iter().copied()),
                valid: valid.join(", "),
            });
        };
        let mut spec = Spec { entry, values: parameters(entry).map(default_of).collect() };
        let mut given: Vec<&str> = Vec::new();
        for part in options.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let positional = entry.parameters.iter().find(|p| p.kind == Kind::Text);
            let (option, value) = match (part.split_once('='), positional) {
                (Some((option, value)), _) => (option.trim(), value.trim()),
                (None, Some(parameter)) => (parameter.name, part),
                (None, None) => return Err(syntax(format!("`{part}` is not `option=value`"))),
            };
            if given.contains(&option) {
                return Err(syntax(format!("option `{option}` is given twice")));
            }
            given.push(option);
            spec.set(option, value)?;
        }
        crate::stream::check(&spec)?;
        Ok(spec)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(|parameter, value| default_of(parameter).as_ref() != Some(value)))
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spec({self})")
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.values == other.values
    }
}
