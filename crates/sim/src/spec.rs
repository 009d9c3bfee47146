//! What to run.

use crate::error::SimError;
use crate::result::FlashResult;
use crate::source::{Source, WorkloadError};
use buffer::Replacement;
use ftl::Config;
use ftl::victim::by_bank::Policy;
use nand::geometry::Dimensions;
use nand::profiles::Limits;
use nand::{ByType, Capabilities, Geometry, Pairing, Timing, TypesError};
use std::fmt;
use std::sync::Arc;
use workload::trace::{Map, Replay, ReplayOptions, Trace};

/// A device, named and sized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePlan {
    /// The profile's name, for reports.
    pub name: String,
    /// Its shape.
    pub geometry: Geometry,
    /// What it can do.
    pub capabilities: Capabilities,
    /// How long its operations take.
    pub timing: Timing,
    /// What else limits it.
    pub limits: Limits,
    /// Which pages share cells, where that tells how long they take.
    pub pairing: Pairing,
    /// Pages that the host sees.
    pub logical_pages: u32,
}

/// The longest that an operation of a device may take: 1000 s.
const LONGEST_NS: u64 = 1_000_000_000_000;

impl DevicePlan {
    /// A device of the profile's shape, its number of blocks scaled to `capacity_bytes` raw
    /// (rounded to whole blocks on every plane, at least one; `None` keeps the profile's own) of
    /// which the host sees `logical_ratio`.
    ///
    /// # Errors
    /// [`SimError::BadSpec`] if the ratio is not within (0, 1) or an operation takes longer than
    /// 1000 s, [`SimError::Geometry`] if the shape is refused.
    pub fn new(
        name: &str,
        dimensions: Dimensions,
        capabilities: Capabilities,
        timing: Timing,
        capacity_bytes: Option<u64>,
        logical_ratio: f64,
    ) -> Result<Self, SimError> {
        if !(logical_ratio > 0.0 && logical_ratio < 1.0) {
            return Err(SimError::BadSpec {
                what: "logical ratio",
                reason: format!("{logical_ratio} is not between 0 and 1; 0.7 is usual"),
            });
        }
        let Timing { read_ns, spare_read_ns, program_ns, erase_ns, .. } = timing;
        let longest = |by_type: &ByType| by_type.as_slice().iter().copied().max().unwrap_or(0);
        let times = [
            ("read_ns", read_ns),
            ("read_by_type_ns", longest(&timing.read_by_type_ns)),
            ("spare_read_ns", spare_read_ns),
            ("program_ns", program_ns),
            ("program_by_type_ns", longest(&timing.program_by_type_ns)),
            ("erase_ns", erase_ns),
        ];
        if let Some((field, ns)) = times.into_iter().find(|(_, ns)| *ns > LONGEST_NS) {
            let reason =
                format!("{field} of device {name} is {ns} ns, and no operation takes longer than 1000 s (1e12 ns)");
            return Err(SimError::BadSpec { what: "timing", reason });
        }
        let blocks = match capacity_bytes {
            Some(bytes) => blocks_for(&dimensions, bytes)?,
            None => dimensions.blocks,
        };
        let geometry = Geometry::new(Dimensions { blocks, ..dimensions })
            .map_err(|source| SimError::Geometry { device: name.to_owned(), source })?;
        let logical_pages = (f64::from(geometry.pages()) * logical_ratio) as u32;
        let (limits, pairing) = (Limits::NONE, Pairing::NONE);
        let (name, logical_pages) = (name.to_owned(), logical_pages.max(1));
        Ok(Self { name, geometry, capabilities, timing, limits, pairing, logical_pages })
    }

    /// The same device with these limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The same device with these cells.
    ///
    /// # Errors
    /// [`SimError::BadSpec`] if its times by page type are not those of such cells.
    pub fn with_pairing(self, pairing: Pairing) -> Result<Self, SimError> {
        let refused = |error: TypesError| SimError::BadSpec { what: "timing", reason: error.to_string() };
        self.timing.check(pairing).map_err(refused)?;
        Ok(Self { pairing, ..self })
    }

    /// Bytes that the host sees.
    #[must_use]
    pub fn logical_bytes(&self) -> u64 {
        u64::from(self.logical_pages) * u64::from(self.geometry.page_bytes())
    }

    /// The default configuration of an FTL on this device: [`Config::new`].
    #[must_use]
    pub fn config(&self) -> Config {
        Config::new(self.logical_pages)
    }

    /// δ, how many reads one program takes as long as, array times alone; 10 if the profile has no
    /// read time.
    #[must_use]
    pub fn delta(&self) -> f64 {
        if self.timing.read_ns == 0 || self.timing.program_ns == 0 {
            return DEFAULT_DELTA;
        }
        self.timing.program_ns as f64 / self.timing.read_ns as f64
    }

    /// Seconds that these operations take one after the other, array times alone.
    #[must_use]
    pub fn serial_seconds(&self, ops: &FlashResult) -> f64 {
        let t = &self.timing;
        let parts = [
            (ops.reads, t.read_ns),
            (ops.spare_reads, t.spare_read_ns),
            (ops.programs, t.program_ns),
            (ops.erases, t.erase_ns),
            (ops.flag_programs, t.program_ns),
        ];
        parts.iter().map(|(count, ns)| *count as f64 * *ns as f64).sum::<f64>() / 1e9
    }
}

/// GeckoFTL's 1 ms write over its 100 µs read.
const DEFAULT_DELTA: f64 = 10.0;

/// The number of blocks nearest to `bytes` that divides evenly over all planes.
fn blocks_for(d: &Dimensions, bytes: u64) -> Result<u32, SimError> {
    let block_bytes = u64::from(d.pages_per_block) * u64::from(d.page_bytes);
    let units = u64::from(d.channels) * u64::from(d.dies_per_channel) * u64::from(d.planes_per_die);
    let row = block_bytes * units;
    let rows = (bytes + row / 2).checked_div(row).unwrap_or(1).max(1);
    u32::try_from(rows * units).map_err(|_| SimError::BadSpec {
        what: "capacity",
        reason: format!("{bytes} B are {} blocks, more than 32 bits name; use larger blocks", rows * units),
    })
}

/// Which part of a run a source is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadContext {
    /// Bytes of the disk that requests may address.
    pub capacity_bytes: u64,
    /// Bytes in a page, the natural size of a request.
    pub page_bytes: u32,
    /// Seed; differs between preconditioning and measurement.
    pub seed: u64,
    /// Whether its requests will be measured, or only age the device.
    pub measured: bool,
}

/// Makes a source of requests.
pub type MakeSource = dyn Fn(&WorkloadContext) -> Result<Box<dyn Source>, SimError> + Send + Sync;

/// A workload: a name for reports and a way to start it, as often as needed.
#[derive(Clone)]
pub struct WorkloadSpec {
    /// For reports, as the user wrote it.
    pub name: String,
    /// Starts it from its beginning.
    pub make: Arc<MakeSource>,
    /// What was done to a trace to fit it here, in words; for reports.
    pub notes: Vec<String>,
    /// Whether the name says all: under the same name, the same requests for the same context at
    /// any time.
    name_says_all: bool,
    /// Whether its requests end, so that a device is aged by whole passes over them.
    pub(crate) has_passes: bool,
}

impl WorkloadSpec {
    /// A workload by name and constructor.
    pub fn new(
        name: impl Into<String>,
        make: impl Fn(&WorkloadContext) -> Result<Box<dyn Source>, SimError> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), make: Arc::new(make), notes: Vec::new(), name_says_all: false, has_passes: false }
    }

    /// A synthetic workload from its text, such as `zipf:theta=0.99,reads=30`.
    ///
    /// # Errors
    /// [`SimError::Workload`] if the text names no workload or an option that it does not have.
    pub fn synthetic(text: &str) -> Result<Self, SimError> {
        let name = text.to_owned();
        let failed = move |e: WorkloadError| SimError::Workload { workload: name.clone(), reason: e.to_string() };
        let spec: workload::Spec = text.parse().map_err(&failed)?;
        let (name_says_all, has_passes) = (spec.says_all(), spec.has_passes());
        let workload = Self::new(text, move |c: &WorkloadContext| {
            let built = match c.measured {
                true => spec.build(c.capacity_bytes, c.page_bytes, c.seed),
                false => spec.build_pass(c.capacity_bytes, c.page_bytes, c.seed),
            };
            built.map_err(&failed)
        });
        Ok(Self { name_says_all, has_passes, ..workload })
    }
}

impl WorkloadSpec {
    /// A recorded trace, played `laps` times in the measured part (`None`: for ever). Ageing plays
    /// it as often as it takes, to its end: each FTL is then measured from the same place, and
    /// pages are not written again in the order in which they were just written.
    #[must_use]
    pub fn replay(trace: Arc<Trace>, map: Map, laps: Option<u64>) -> Self {
        let name = trace.name().rsplit('/').next().unwrap_or_default().to_owned();
        let failed = name.clone();
        let replay = Self::new(name, move |context: &WorkloadContext| {
            let repeat = if context.measured { laps } else { Some(1) };
            let options = ReplayOptions { map, repeat, ..ReplayOptions::default() };
            Replay::new(&trace, options, context.capacity_bytes, context.page_bytes)
                .map(|replay| Box::new(replay) as Box<dyn Source>)
                .map_err(|error| SimError::Workload { workload: failed.clone(), reason: error.to_string() })
        });
        Self { has_passes: true, ..replay }
    }
}

impl fmt::Debug for WorkloadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkloadSpec").field("name", &self.name).field("notes", &self.notes).finish_non_exhaustive()
    }
}

/// With which writes a device is aged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnWrites {
    /// The writes and trims of the workload itself, restarted whenever it ends; reads are skipped.
    Workload,
    /// Whole pages, uniformly at random.
    Uniform,
}

/// What is written before a device is aged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum First {
    /// This share of the logical pages, in order.
    Fill(f64),
    /// Every logical page, and some again, so that blocks live as after long uniform random writing
    /// ([`crate::aged`]): little has to be overwritten then. The first window after that does not
    /// count.
    Aged,
}

/// When ageing stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyOptions {
    /// Which writes.
    pub writes: OwnWrites,
    /// What is written before.
    pub first: First,
    /// Host page writes in a window, in multiples of the logical pages.
    pub window: f64,
    /// How many windows in a row must agree.
    pub agree: u32,
    /// They agree if the largest and smallest of their write-amplifications differ by no more than
    /// this share.
    pub tolerance: f64,
    /// Windows after which it stops anyway, and says so.
    pub max_windows: u32,
}

impl Default for SteadyOptions {
    fn default() -> Self {
        Self {
            writes: OwnWrites::Workload,
            first: First::Fill(1.0),
            window: 0.5,
            agree: 3,
            tolerance: 0.01,
            max_windows: 32,
        }
    }
}

/// How a device is brought into a representative state before anything is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PreconditionMode {
    /// Not at all: an empty device.
    Off,
    /// This share of the logical pages written once, in order.
    Fill(f64),
    /// Filled, then overwritten until write-amplification is steady.
    Steady(SteadyOptions),
}

impl Default for PreconditionMode {
    fn default() -> Self {
        Self::Steady(SteadyOptions::default())
    }
}

/// How requests arrive in timed mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HostMode {
    /// At the time each request carries, multiplied by `time_scale`. No more than `outstanding` are
    /// in the device; the others wait in the host, and their latency counts from their arrival.
    Open {
        /// 1 replays as recorded, 0.5 twice as fast.
        time_scale: f64,
        /// Requests in the device at once.
        outstanding: u32,
    },
    /// At random times of a Poisson process, whatever times the requests carry. No more than
    /// `outstanding` are in the device; the others wait in the host, and their latency counts from
    /// their arrival.
    Poisson {
        /// Requests a second, on average.
        per_s: f64,
        /// Requests in the device at once.
        outstanding: u32,
    },
    /// A fixed number of clients, each with one request at a time.
    Closed {
        /// Clients.
        queue_depth: u32,
        /// Nanoseconds between the end of a client's request and the start of its next.
        think_ns: u64,
    },
}

impl HostMode {
    /// Requests in the device at once, at most.
    #[must_use]
    pub const fn most_in_device(&self) -> u32 {
        match *self {
            Self::Open { outstanding, .. } | Self::Poisson { outstanding, .. } => outstanding,
            Self::Closed { queue_depth, .. } => queue_depth,
        }
    }
}

impl Default for HostMode {
    fn default() -> Self {
        Self::Closed { queue_depth: 32, think_ns: 0 }
    }
}

/// When garbage is collected in timed mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum GcMode {
    /// When a write finds space short; that write waits for it.
    #[default]
    Foreground,
    /// Also whenever nothing else is to be done and no request is in the device.
    Idle,
    /// Also while fewer blocks are free than the FTL holds when idle, whatever else is to be done:
    /// behind every request on each die, a collection for each die at most.
    Ahead,
    /// Bank by bank, as LFTL does, where each write goes to a bank that is not busy. Also when a
    /// write finds space short on the whole device. For FTLs that are mapped by page.
    ByBank {
        /// Who collects.
        policy: Policy,
        /// Collectors at most.
        collectors: u32,
    },
}

impl GcMode {
    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Foreground => "foreground",
            Self::Idle => "idle",
            Self::Ahead => "ahead",
            Self::ByBank { policy, .. } => policy.name(),
        }
    }
}

/// The timed device. See [`crate::timing`] for exactly what is modelled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueOptions {
    /// How requests arrive.
    pub host: HostMode,
    /// When garbage is collected.
    pub gc: GcMode,
    /// Reads made for a request overtake programs, erases and copies that wait for the same die.
    pub read_priority: bool,
    /// How many reads may overtake the same waiting operation before it gets its turn.
    pub max_overtakes: u32,
    /// If given, such reads also suspend a running program or erase, which costs it this many
    /// nanoseconds each time.
    pub suspend_ns: Option<u64>,
    /// Nanoseconds that the controller adds to every request, however many it works on.
    pub controller_ns: u64,
    /// Nanoseconds that the FTL works on each page that is read, and on each that is written, one
    /// after another.
    pub ftl_page_ns: [u64; 2],
    /// Whether collections take time: every operation whose purpose is to move pages out of
    /// victims, to erase them, or to ask what lives in them. If not, the FTL does the same
    /// operations in the same order, and those cost nothing.
    pub collection_takes_time: bool,
    /// Requests at the beginning whose latency is not recorded.
    pub warm_up_requests: u64,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            host: HostMode::default(),
            gc: GcMode::default(),
            read_priority: true,
            max_overtakes: 64,
            suspend_ns: None,
            controller_ns: 0,
            ftl_page_ns: [0; 2],
            collection_takes_time: true,
            warm_up_requests: 0,
        }
    }
}

/// Whether time passes.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum TimingMode {
    /// Operations are counted, nothing more. The fast one.
    #[default]
    None,
    /// Virtual time with queues.
    Queued(QueueOptions),
}

/// A write buffer between host and FTL, in RAM that power loss empties: what was not flushed is not
/// durable. [`crate::host::buffered`] says exactly what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBufferOptions {
    /// Pages that it has room for: at least one, and no more than the host sees.
    pub pages: u32,
    /// Which of them leave first.
    pub policy: Replacement,
}

/// One run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// Name in the table of FTLs.
    pub ftl: String,
    /// The device.
    pub device: DevicePlan,
    /// What the FTL is told; its `logical_pages` is overridden by the device plan's.
    pub config: Config,
    /// The requests.
    pub workload: WorkloadSpec,
    /// What gathers writes before the FTL; nothing if none.
    pub write_buffer: Option<WriteBufferOptions>,
    /// Stop once so many pages have been written in the measured part, or 64 times as many read and
    /// trimmed; 0 means when the source ends, which synthetic ones never do.
    pub writes: u64,
    /// Stop also after so many requests; 0 means no such limit.
    pub requests: u64,
    /// What comes before.
    pub precondition: PreconditionMode,
    /// Whether time passes.
    pub timing: TimingMode,
    /// All randomness follows from it.
    pub seed: u64,
    /// Read back and check every page at the end (every read in between is always checked).
    pub verify: bool,
    /// Host pages written in an interval of the timeline; 0 for about 128 intervals. Intervals
    /// double when there would be more than 256.
    pub interval_writes: u64,
    /// Cut power after the measured part, mount from flash alone, and report what that took. An FTL
    /// that keeps completed writes only after a flush is flushed first; one that needs a battery
    /// has one. Refused if the FTL cannot be mounted. For workloads without trims: power loss may
    /// undo those, and the final check would say so.
    pub power_cut: bool,
}

impl RunSpec {
    /// A counted run, preconditioned to a steady state, of two writes for each logical page.
    #[must_use]
    pub fn new(ftl: &str, device: DevicePlan, workload: WorkloadSpec) -> Self {
        let config = device.config();
        let writes = u64::from(device.logical_pages) * 2;
        Self {
            ftl: ftl.to_owned(),
            device,
            config,
            workload,
            write_buffer: None,
            writes,
            requests: 0,
            precondition: PreconditionMode::default(),
            timing: TimingMode::None,
            seed: 1,
            verify: true,
            interval_writes: 0,
            power_cut: false,
        }
    }

    /// All settings as text. Runs with the same text come to the same result in the same program,
    /// the computer's part apart. `None` if text does not say all, as with a recorded trace.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        self.workload.name_says_all.then(|| format!("{self:?}"))
    }
}
