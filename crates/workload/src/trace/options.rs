//! What a user can say about a trace that the file does not.

use crate::error::{WorkloadError, nearest};
use crate::request::Op;
use std::str::FromStr;

/// How to open a trace; the default finds out everything and is strict. To state what a file says
/// itself is an error.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Name of the format; found by content if `None`.
    pub format: Option<String>,
    /// Skip and count malformed lines instead of failing on the first.
    pub lenient: bool,
    /// Keep the requests of this device or volume only (named as in the file).
    pub device: Option<String>,
    /// Unit of the time column of the five-column form, and of the waits of a fio I/O log, version
    /// 2; guessed if `None`.
    pub time_unit: Option<TimeUnit>,
    /// Unit of the address column, for the five-column form and oracleGeneral; guessed if `None`.
    pub address_unit: Option<SizeUnit>,
    /// Unit of the size column, for the five-column form; guessed if `None`.
    pub size_unit: Option<SizeUnit>,
    /// Meaning of the flag column, for the five-column form; `1 = read` (DiskSim) if `None`.
    pub flag: Option<FlagMeaning>,
    /// What a request is in formats that do not say (oracleGeneral); writes if `None`.
    pub unsaid_op: Option<Op>,
    /// Stop after so many requests.
    pub limit: Option<u64>,
    /// Bytes added to every address: a partition that begins within a page makes every request of
    /// a file system unaligned.
    pub shift_bytes: u64,
}

/// Something that files of some formats do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsaid {
    /// [`OpenOptions::time_unit`].
    TimeUnit,
    /// [`OpenOptions::address_unit`].
    AddressUnit,
    /// [`OpenOptions::size_unit`].
    SizeUnit,
    /// [`OpenOptions::flag`].
    Flag,
    /// [`OpenOptions::unsaid_op`].
    Operation,
}

impl Unsaid {
    /// What it is.
    pub const fn name(self) -> &'static str {
        match self {
            Unsaid::TimeUnit => "unit of times",
            Unsaid::AddressUnit => "unit of addresses",
            Unsaid::SizeUnit => "unit of sizes",
            Unsaid::Flag => "meaning of the flag",
            Unsaid::Operation => "kind of a request",
        }
    }
}

impl OpenOptions {
    /// What these options say that a file of some formats does not.
    pub(super) fn stated(&self) -> impl Iterator<Item = Unsaid> {
        let given = [
            (Unsaid::TimeUnit, self.time_unit.is_some()),
            (Unsaid::AddressUnit, self.address_unit.is_some()),
            (Unsaid::SizeUnit, self.size_unit.is_some()),
            (Unsaid::Flag, self.flag.is_some()),
            (Unsaid::Operation, self.unsaid_op.is_some()),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(what, _)| what)
    }
}

/// Unit of a time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Ticks of 100 ns, as Windows counts.
    Ticks,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl TimeUnit {
    /// Nanoseconds in one unit.
    pub const fn ns(self) -> u64 {
        match self {
            TimeUnit::Nanoseconds => 1,
            TimeUnit::Ticks => 100,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Seconds => 1_000_000_000,
        }
    }

    /// Short name: ns, 100ns, us, ms, s.
    pub const fn name(self) -> &'static str {
        match self {
            TimeUnit::Nanoseconds => "ns",
            TimeUnit::Ticks => "100ns",
            TimeUnit::Microseconds => "us",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Seconds => "s",
        }
    }
}

/// Unit of an address or size column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeUnit {
    /// Bytes.
    Bytes,
    /// Sectors of 512 bytes.
    Sectors,
    /// Pages of 4 KiB.
    Pages,
}

impl SizeUnit {
    /// Bytes in one unit.
    pub const fn bytes(self) -> u64 {
        match self {
            SizeUnit::Bytes => 1,
            SizeUnit::Sectors => 512,
            SizeUnit::Pages => 4096,
        }
    }

    /// Plain name: bytes, sectors, pages.
    pub const fn name(self) -> &'static str {
        match self {
            SizeUnit::Bytes => "bytes",
            SizeUnit::Sectors => "sectors",
            SizeUnit::Pages => "pages",
        }
    }
}

/// Meaning of a 0/1 flag column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagMeaning {
    /// 1 reads, 0 writes: DiskSim, SSDSim, MQSim.
    OneReads,
    /// 1 writes, 0 reads.
    OneWrites,
}

fn choose<T: Copy>(what: &'static str, text: &str, names: &[(&str, T)]) -> Result<T, WorkloadError> {
    names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| WorkloadError::Unknown {
        what,
        name: text.to_owned(),
        nearest: nearest(text, names.iter().map(|n| n.0)),
        valid: names.iter().map(|n| n.0).collect::<Vec<_>>().join(", "),
    })
}

impl FromStr for TimeUnit {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        use TimeUnit::{Microseconds, Milliseconds, Nanoseconds, Seconds, Ticks};
        let names = [Nanoseconds, Ticks, Microseconds, Milliseconds, Seconds].map(|unit| (unit.name(), unit));
        choose("time unit", text, &names)
    }
}

impl FromStr for SizeUnit {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let names = [("bytes", SizeUnit::Bytes), ("sectors", SizeUnit::Sectors), ("pages", SizeUnit::Pages)];
        choose("size unit", text, &names)
    }
}

impl FromStr for FlagMeaning {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        choose("flag meaning", text, &[("1=read", FlagMeaning::OneReads), ("1=write", FlagMeaning::OneWrites)])
    }
}
