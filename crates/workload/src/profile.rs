//! A trace reduced to the numbers that shape a device's life, small enough to publish, and able to
//! run for ever.
//!
//! A profile says how many requests write, how large they are, how often one continues the last of
//! its kind, where the others start (popularity) and how they arrive. [`crate::trace::fit`] makes
//! one from a trace; the workload `profile:NAME` or `profile:FILE.toml` runs one. What it does not
//! keep: daily rhythm, any order between requests beyond sequential runs, and which hot pages are
//! neighbours. Hot slots are scattered, so a request of many pages that starts in one warms its
//! cold neighbours: where such requests rule, the generator's pages are less skewed than the
//! trace's, though its starts are not. Starts are drawn with replacement: a trace that writes
//! nearly every page once comes back with some pages written twice and some never. A fitted
//! profile has revisits instead ([`crate::revisits`]). They keep the trace's extents and the
//! regions that it goes through, so that a fitted profile also tells where its trace was.

use crate::error::{WorkloadError, nearest};
use crate::revisits::{REVISITS_VERSION, Revisits};
use serde::{Deserialize, Serialize};

/// Granularity of popularity, in bytes: starts of requests are counted and drawn in slots of this
/// size, or of the profile's alignment if that is larger.
pub(crate) const POPULARITY_PAGE_BYTES: u64 = 4096;

/// A workload in numbers; TOML on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Short name.
    pub name: String,
    /// Where the numbers come from.
    pub source: String,
    /// What is not from the source but assumed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub assumptions: String,
    /// Share of requests that write, percent.
    pub write_percent: f64,
    /// Share of requests that trim, percent; the rest of the requests read. Where writes have
    /// revisits, which of the two a request is comes from there.
    #[serde(default)]
    pub trim_percent: f64,
    /// Distinct bytes touched by the trace, in whole 4-KiB pages; 0 if the source does not say. A
    /// generator uses the whole logical space (or `footprint=` of it) whatever this is; size the
    /// device to it for the trace's density.
    #[serde(default)]
    pub footprint_bytes: u64,
    /// Power of two that divides the starts of requests which continue no run, bytes.
    #[serde(default = "default_align")]
    pub align_bytes: u64,
    /// Arrivals, if the source has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Sizes and places of writes, and of trims.
    pub writes: Side,
    /// Sizes and places of reads.
    pub reads: Side,
}

/// How requests of one kind look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// Share of requests that start where the last of this kind ended, percent. Runs are geometric:
    /// their mean length is 100 / (100 - this) requests.
    #[serde(default)]
    pub sequential_percent: f64,
    /// Sizes.
    pub sizes: Vec<SizeShare>,
    /// Where requests start that do not continue a run.
    pub popularity: Popularity,
    /// Where and when requests come back to the same data. Where it is given, a generator goes by
    /// it, and not by popularity, sizes and runs. That of writes has trims and flushes too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisits: Option<Revisits>,
}

/// One size and how often it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeShare {
    /// Size of the request, bytes.
    pub bytes: u64,
    /// Weight relative to the other sizes.
    pub percent: f64,
}

/// How starts spread over the footprint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Popularity {
    /// Zipf's law over the footprint.
    Zipf {
        /// Its exponent, above 0, up to 5.
        theta: f64,
    },
    /// The `space[i]` percent of the footprint that are hottest get `share[i]` percent of the
    /// starts; uniform between two points.
    Curve {
        /// Percent of the footprint, rising.
        space: Vec<f64>,
        /// Percent of the starts, rising, up to 100.
        share: Vec<f64>,
    },
}

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Mean rate, requests a second.
    pub per_second: f64,
    /// Coefficient of variation of the gaps: 1 is Poisson, above is bursty.
    pub cv: f64,
}

/// Refuses revisits that another version of this program fitted: their fields are others, or mean
/// something else.
fn check_version(found: Option<&toml::Value>) -> Result<(), String> {
    match found {
        Some(found) if found.as_integer() == Some(i64::from(REVISITS_VERSION)) => Ok(()),
        Some(found) => Err(format!("version {found}, and this program plays {REVISITS_VERSION}; fit the trace again")),
        None => Err(format!("no version, and this program plays {REVISITS_VERSION}; fit the trace again")),
    }
}

fn default_align() -> u64 {
    POPULARITY_PAGE_BYTES
}

/// Profiles from the literature: name and TOML text.
pub fn published() -> &'static [(&'static str, &'static str)] {
    &[
        ("financial1", include_str!("../profiles/financial1.toml")),
        ("msnfs", include_str!("../profiles/msnfs.toml")),
        ("radius", include_str!("../profiles/radius.toml")),
        ("ts0", include_str!("../profiles/ts0.toml")),
    ]
}

impl Profile {
    /// A published profile by name, or else the TOML file of that path.
    ///
    /// # Errors
    /// If there is neither, or if the text is not a profile.
    pub fn load(name: &str) -> Result<Profile, WorkloadError> {
        if let Some((_, text)) = published().iter().find(|(known, _)| *known == name) {
            return Profile::parse(name, text);
        }
        let path = std::path::Path::new(name);
        match std::fs::read_to_string(path) {
            Ok(text) => Profile::parse(name, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let known = published().iter().map(|(name, _)| *name);
                Err(WorkloadError::Unknown {
                    what: "profile or profile file",
                    name: name.to_owned(),
                    nearest: nearest(name, known.clone()),
                    valid: format!("{}, or the path of a TOML file", known.collect::<Vec<_>>().join(", ")),
                })
            }
            Err(source) => Err(WorkloadError::Io { action: "read", path: path.to_owned(), source }),
        }
    }

    /// Reads TOML; `name` is for the error.
    ///
    /// # Errors
    /// If the text is not TOML of a profile, or a number is out of its range.
    pub fn parse(name: &str, text: &str) -> Result<Profile, WorkloadError> {
        let fault = |why: String| WorkloadError::Profile { name: name.to_owned(), why };
        let table: toml::Table = toml::from_str(text).map_err(|e| fault(e.to_string()))?;
        for side in ["writes", "reads"] {
            if let Some(revisits) = table.get(side).and_then(|side| side.get("revisits")) {
                check_version(revisits.get("version")).map_err(|why| fault(format!("{side}.revisits: {why}")))?;
            }
        }
        let profile: Profile = toml::from_str(text).map_err(|e| fault(e.to_string()))?;
        profile.check().map_err(fault)?;
        Ok(profile)
    }

    /// Writes TOML that [`Profile::parse`] reads back.
    ///
    /// # Errors
    /// If a number cannot be written, which a checked profile excludes.
    pub fn to_toml(&self) -> Result<String, WorkloadError> {
        let fault = |why: String| WorkloadError::Profile { name: self.name.clone(), why };
        toml::to_string(self).map_err(|e| fault(e.to_string()))
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        percent("write_percent", self.write_percent)?;
        percent("trim_percent", self.trim_percent)?;
        if self.write_percent + self.trim_percent > 100.0 + 1e-6 {
            return Err("write_percent and trim_percent are more than 100 together".to_owned());
        }
        if !self.align_bytes.is_power_of_two() || self.align_bytes > 1 << 30 {
            return Err(format!("align_bytes is {}, not a power of two up to 1 GiB", self.align_bytes));
        }
        if let Some(arrivals) = self.arrivals {
            if !(arrivals.per_second > 0.0 && arrivals.per_second <= 1e9) {
                return Err("arrivals.per_second must be above 0, up to 1e9".to_owned());
            }
            if !(0.0..=1e6).contains(&arrivals.cv) {
                return Err("arrivals.cv must be between 0 and 1e6".to_owned());
            }
        }
        self.writes.check().map_err(|why| format!("writes: {why}"))?;
        self.reads.check().map_err(|why| format!("reads: {why}"))
    }
}

impl Profile {
    /// Whether a pass of its writes is played over and over.
    pub(crate) fn has_passes(&self) -> bool {
        self.write_percent + self.trim_percent > 0.0 && self.writes.revisits.is_some()
    }

    /// Bytes of a slot, the unit in which popularity is counted.
    pub(crate) fn slot_bytes(&self) -> u64 {
        self.align_bytes.max(POPULARITY_PAGE_BYTES)
    }
}

impl Side {
    /// Mean size of a request, bytes.
    pub fn mean_bytes(&self) -> f64 {
        let weight: f64 = self.sizes.iter().map(|s| s.percent).sum();
        self.sizes.iter().map(|s| s.bytes as f64 * s.percent).sum::<f64>() / weight
    }

    fn check(&self) -> Result<(), String> {
        percent("sequential_percent", self.sequential_percent)?;
        if self.sizes.is_empty() {
            return Err("sizes is empty".to_owned());
        }
        for size in &self.sizes {
            if size.bytes == 0 || size.bytes > 1 << 40 || !(size.percent > 0.0 && size.percent <= 1e9) {
                return Err(format!("size of {} B with weight {}: both must be above 0", size.bytes, size.percent));
            }
        }
        self.revisits.as_ref().map_or(Ok(()), Revisits::check)?;
        match &self.popularity {
            Popularity::Zipf { theta } if *theta > 0.0 && *theta <= 5.0 => Ok(()),
            Popularity::Zipf { theta } => Err(format!("theta is {theta}, it must be above 0, up to 5")),
            Popularity::Curve { space, share } => curve(space, share),
        }
    }
}

fn percent(name: &str, value: f64) -> Result<(), String> {
    match (0.0..=100.0 + 1e-6).contains(&value) {
        true => Ok(()),
        false => Err(format!("{name} is {value}, not a percentage")),
    }
}

fn curve(space: &[f64], share: &[f64]) -> Result<(), String> {
    if space.len() != share.len() || space.is_empty() {
        return Err("the curve needs as many points of space as of share, and at least one".to_owned());
    }
    let rising = |list: &[f64]| list.is_sorted() && list.iter().all(|v| *v > 0.0 && *v <= 100.0 + 1e-6);
    match rising(space) && rising(share) {
        true => Ok(()),
        false => Err("space and share must rise, above 0 and up to 100".to_owned()),
    }
}
