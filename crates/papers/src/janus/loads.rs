//! Workloads of Janus-FTL's paper: an OLTP one and a mostly sequential one, recorded where a folder
//! of traces has them.

use crate::figure::Run;
use crate::lab::{Lab, Shape};
use crate::loads::recorded;
use ftl::Maps;
use nand::geometry::Dimensions;
use sim::{DevicePlan, PreconditionMode, RunSpec, SimError, WorkloadSpec};
use std::sync::Arc;
use workload::trace::{Map, Trace, footprint};

/// The device of Janus-FTL's simulator: 8192 blocks of 64 pages of 2 KiB.
pub const PROFILE: &str = "janus-slc";

/// That device is simulated whole from this scale on; it is 2048 times smaller than GeckoFTL's.
const WHOLE_FROM: f64 = 1.0 / 256.0;

/// The share of the device's blocks that a scale stands for.
#[must_use]
pub fn share_of_device(lab: &Lab) -> f64 {
    (lab.scale / WHOLE_FROM).min(1.0)
}

/// What kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Mostly sequential writes; in the paper the PC trace.
    Sequential,
    /// Random writes with locality; in the paper the OLTP trace Financial1.
    Oltp,
}

impl Kind {
    /// Both, in the order of the paper's figures.
    pub const ALL: [Self; 2] = [Self::Sequential, Self::Oltp];

    /// Its name in charts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Oltp => "OLTP",
        }
    }

    /// How file names of traces of this kind begin, the best first.
    const fn files(self) -> &'static [&'static str] {
        match self {
            Self::Sequential => &["pc", "mobile_install", "iozone"],
            Self::Oltp => &["financial1", "fin1"],
        }
    }

    /// The localities in which a workload of this kind, or a trace, is tried.
    const fn localities(self, recorded: bool) -> &'static [Locality] {
        match (self, recorded) {
            (Self::Sequential | Self::Oltp, true) => &[Locality::OwnAddresses, Locality::Packed],
            (Self::Sequential, false) => &[Locality::Narrow, Locality::Broad],
            (Self::Oltp, false) => &[Locality::Narrow, Locality::Broad, Locality::Streams],
        }
    }

    /// What stands in for it. Everything goes to a part of the device that it has at every
    /// over-provisioning.
    const fn synthetic(self, locality: Locality) -> StandIn {
        match (self, locality) {
            (Self::Oltp, Locality::Streams) => {
                StandIn { text: "streams:count=8,size=4KiB", footprint: LEAST_LOGICAL, writes: 2 }
            }
            (Self::Oltp, Locality::Narrow) => StandIn {
                text: "hotcold:writes=95,space=4,scatter=0,size=4KiB,align=4KiB",
                footprint: LEAST_LOGICAL,
                writes: 15,
            },
            (Self::Oltp, _) => StandIn {
                text: "hotcold:writes=64,space=20,scatter=0,size=4KiB*60+8KiB*30+16KiB*10,align=4KiB",
                footprint: 0.3 * LEAST_LOGICAL,
                writes: 8,
            },
            (Self::Sequential, Locality::Narrow) => StandIn {
                text: "hotcold:writes=80,space=4,scatter=0,size=4KiB*80+64KiB*10+128KiB*10,align=4KiB",
                footprint: LEAST_LOGICAL,
                writes: 2,
            },
            (Self::Sequential, _) => StandIn {
                text: "hotcold:writes=60,space=20,scatter=0,size=4KiB*60+64KiB*25+512KiB*15,align=4KiB",
                footprint: LEAST_LOGICAL,
                writes: 2,
            },
        }
    }

    /// How often a recorded trace is played. The paper's PC trace is short; its OLTP trace writes
    /// the device many times, of which the excerpts at hand are a small part.
    const fn laps(self, locality: Locality) -> u64 {
        match (self, locality) {
            (Self::Sequential, Locality::OwnAddresses) => 2,
            (Self::Sequential, _) => 1,
            (Self::Oltp, _) => 16,
        }
    }
}

/// The smallest share of the blocks that a figure leaves to logical pages.
const LEAST_LOGICAL: f64 = 0.8;

/// Where requests go, on which most of the paper's claims depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    /// Synthetic: nearly all requests go to a part of the device that a page-mapped area holds.
    Narrow,
    /// Synthetic: the hot part is larger, and many requests go elsewhere.
    Broad,
    /// Synthetic: nothing but sequential streams.
    Streams,
    /// Recorded, at its own addresses modulo the logical space of the paper's device.
    OwnAddresses,
    /// Recorded, the pages that it touches side by side on a device that they fill.
    Packed,
}

impl Locality {
    /// Its name in charts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Narrow => "narrow",
            Self::Broad => "broad",
            Self::Streams => "streams",
            Self::OwnAddresses => "own addresses",
            Self::Packed => "packed",
        }
    }
}

/// A synthetic workload that stands in for a trace.
#[derive(Clone, Copy, Debug)]
struct StandIn {
    text: &'static str,
    /// The part of the device that it writes, over all blocks.
    footprint: f64,
    /// Pages written for each page of the device.
    writes: u64,
}

/// A workload with the device that fits it.
pub struct Load {
    kind: Kind,
    locality: Locality,
    trace: Option<Arc<Trace>>,
}

impl Load {
    /// The workloads of this kind: the recorded trace in the lab's folder in two layouts, or
    /// synthetic ones.
    ///
    /// # Errors
    /// [`SimError::Workload`] if the folder or the trace cannot be read.
    pub fn find(lab: &Lab, kind: Kind) -> Result<Vec<Self>, SimError> {
        let trace = recorded(lab, kind.files())?.map(Arc::new);
        let localities = kind.localities(trace.is_some()).iter();
        Ok(localities.map(|&locality| Self { kind, locality, trace: trace.clone() }).collect())
    }

    /// Both kinds.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn find_all(lab: &Lab) -> Result<Vec<Self>, SimError> {
        let each: Result<Vec<Vec<Self>>, SimError> = Kind::ALL.into_iter().map(|kind| Self::find(lab, kind)).collect();
        each.map(|each| each.into_iter().flatten().collect())
    }

    /// What kind of workload it is.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Where its requests go.
    pub const fn locality(&self) -> Locality {
        self.locality
    }

    /// Its name in charts, tables and claims.
    pub fn name(&self) -> String {
        format!("{}, {}", self.kind.name(), self.locality.name())
    }

    /// Where requests go, in words for a claim.
    pub const fn in_words(&self) -> &'static str {
        match (self.kind, self.locality) {
            (Kind::Oltp, Locality::Narrow) => "OLTP, 95% of the requests to 3.2% of the device",
            (Kind::Oltp, Locality::Broad) => "OLTP, 64% of the requests to 4.8% of the device, the others to 19.2%",
            (_, Locality::Streams) => "OLTP, eight sequential streams",
            (Kind::Oltp, Locality::OwnAddresses) => "OLTP, recorded, own addresses",
            (Kind::Oltp, Locality::Packed) => "OLTP, recorded, packed",
            (Kind::Sequential, Locality::Narrow) => "sequential, 80% of the requests to 3.2% of the device",
            (Kind::Sequential, Locality::Broad) => "sequential, 60% of the requests to 16% of the device",
            (Kind::Sequential, Locality::OwnAddresses) => "sequential, recorded, own addresses",
            (Kind::Sequential, Locality::Packed) => "sequential, recorded, packed",
        }
    }

    /// What it is, in a sentence that says whether it is real.
    pub fn describe(&self) -> String {
        let name = self.name();
        match &self.trace {
            Some(trace) => format!(
                "{name}: recorded trace {}, {} requests, played {} times {}; an excerpt or another trace than the paper's \
                 shows its own behaviour",
                trace.name().rsplit('/').next().unwrap_or_default(),
                trace.records().len(),
                self.kind.laps(self.locality),
                match self.locality {
                    Locality::OwnAddresses => "at its addresses modulo the logical space of the paper's device",
                    _ => "on a device made for the pages it touches",
                }
            ),
            None => {
                let StandIn { text, footprint, writes } = self.kind.synthetic(self.locality);
                format!(
                    "{name}: SYNTHETIC, `{text}` on {:.0}% of the device, standing in for the paper's trace; {writes} pages \
                     written for each page of the device (--traces names a folder of recorded ones)",
                    footprint * 100.0
                )
            }
        }
    }

    /// A device with this share of its blocks over-provisioned: the paper's, or for a packed trace
    /// one that its pages fill.
    fn device(&self, lab: &Lab, over_provisioned: f64) -> Result<DevicePlan, SimError> {
        let ratio = 1.0 - over_provisioned;
        let shape = Shape { logical_ratio: Some(ratio), ..Shape::share(share_of_device(lab)) };
        let device = lab.device(PROFILE, shape)?;
        let (Some(trace), Locality::Packed) = (&self.trace, self.locality) else { return Ok(device) };
        let d: Dimensions = device.geometry.dimensions();
        let pages = footprint(trace, d.page_bytes).touched_pages;
        let block_bytes = u64::from(d.pages_per_block) * u64::from(d.page_bytes);
        let blocks = (pages as f64 / f64::from(d.pages_per_block) / ratio).ceil() as u64 + 1;
        let (capabilities, timing) = (device.capabilities, device.timing);
        DevicePlan::new(PROFILE, d, capabilities, timing, Some(blocks * block_bytes), ratio)
    }

    /// A run of this FTL with this share of the blocks over-provisioned, on a device filled in
    /// order.
    ///
    /// As many pages are written, to a part of the device as large, whatever is over-provisioned.
    ///
    /// # Errors
    /// [`SimError`] if device or workload cannot be made.
    pub fn run(&self, lab: &Lab, ftl: &str, over_provisioned: f64) -> Result<RunSpec, SimError> {
        let device = self.device(lab, over_provisioned)?;
        let (workload, writes) = match (&self.trace, self.locality) {
            (Some(trace), locality) => {
                let map = if locality == Locality::Packed { Map::Dense } else { Map::Fold };
                (WorkloadSpec::replay(trace.clone(), map, Some(self.kind.laps(locality))), 0)
            }
            (None, locality) => {
                let StandIn { text, footprint, writes } = self.kind.synthetic(locality);
                let pages = u64::from(device.geometry.pages());
                let percent = footprint / (1.0 - over_provisioned) * 100.0;
                let text = format!("{text},footprint={:.3}", percent.min(100.0));
                (WorkloadSpec::synthetic(&text)?, pages * writes)
            }
        };
        let mut spec = RunSpec::new(ftl, device, workload);
        spec.writes = writes;
        spec.seed = lab.seed;
        spec.precondition = PreconditionMode::Fill(1.0);
        spec.config.maps = Maps::NonVolatile;
        Ok(spec)
    }
}

/// The file-system benchmark of the paper's Figures 8 and 9: PostMark in four rounds of other
/// sizes, one after the other.
///
/// The paper says no more of it than the sizes. Blocks of 4 KiB are what a file system of 1 GiB
/// has; sizes of files, mix and journal are the defaults of the workload.
pub struct PostMark {
    device: DevicePlan,
    round: u64,
}

impl PostMark {
    /// Sizes of the files of each round together, percent of capacity.
    pub const FILLS: [u32; 4] = [90, 10, 70, 30];
    /// Host pages written in a round, over the logical pages.
    const WRITES: u64 = 3;
    /// Block of the file system, bytes.
    const BLOCK: u64 = 4096;

    /// On the paper's device, 10% of it over-provisioned.
    ///
    /// # Errors
    /// As [`Lab::device`].
    pub fn new(lab: &Lab) -> Result<Self, SimError> {
        let shape = Shape { logical_ratio: Some(0.9), ..Shape::share(share_of_device(lab)) };
        let device = lab.device(PROFILE, shape)?;
        let pages_a_block = Self::BLOCK / u64::from(device.geometry.page_bytes());
        let round = Self::WRITES * u64::from(device.logical_pages) / pages_a_block * pages_a_block;
        Ok(Self { device, round })
    }

    /// Host pages written in a round. The next begins with the deletion of its files.
    #[must_use]
    pub const fn round(&self) -> u64 {
        self.round
    }

    /// A run of this FTL over all rounds, its maps in flash, on a device filled in order.
    ///
    /// # Errors
    /// As [`WorkloadSpec::synthetic`].
    pub fn run(&self, lab: &Lab, ftl: &str) -> Result<RunSpec, SimError> {
        let fills = Self::FILLS.map(|percent| percent.to_string()).join("-");
        let blocks = self.round * u64::from(self.device.geometry.page_bytes()) / Self::BLOCK;
        let text = format!("postmark:fill={fills},block={}KiB,writes={blocks}", Self::BLOCK / 1024);
        let mut spec = RunSpec::new(ftl, self.device.clone(), WorkloadSpec::synthetic(&text)?);
        spec.writes = self.round * Self::FILLS.len() as u64;
        spec.interval_writes = (self.round / 50).max(1);
        spec.seed = lab.seed;
        spec.precondition = PreconditionMode::Fill(1.0);
        spec.config.maps = Maps::InFlash;
        Ok(spec)
    }

    /// Device and workload of a run, in a sentence.
    #[must_use]
    pub fn describe(run: &Run) -> String {
        format!(
            "{} blocks of 128 KiB, 10% of them over-provisioned, filled in order before; workload SYNTHETIC, `{}`, standing \
             in for PostMark on Linux: files of four sizes in all, one after the other, on a modelled ext3; seed {}",
            run.result.geometry.blocks, run.result.workload, run.experiment.spec.seed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn without_traces_the_loads_are_synthetic_and_say_so() {
        let lab = Lab { scale: 1.0 / 4096.0, ..Lab::default() };
        let loads = Load::find_all(&lab).unwrap();
        assert_eq!(loads.len(), 5);
        for load in loads {
            assert!(load.describe().contains("SYNTHETIC"));
            let runs = [0.03, 0.2].map(|over| load.run(&lab, "page", over).unwrap());
            assert!(runs.iter().all(|run| run.device.geometry.blocks() == 512));
            assert_eq!(runs[0].writes, runs[1].writes, "{}", load.name());
        }
    }

    #[test]
    fn a_recorded_trace_keeps_its_addresses_or_gets_a_device_that_it_fills() {
        let folder = std::env::temp_dir().join(format!("openftl-loads-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let lines: String = (0..20_000).map(|i| format!("{i}.5 0 {} 8 0\n", i * 8)).collect();
        fs::write(folder.join("Fin1_small.trace"), lines).unwrap();
        fs::write(folder.join("unrelated.trace"), "").unwrap();
        let lab = Lab { traces: Some(folder.clone()), ..Lab::default() };
        let oltp = Load::find(&lab, Kind::Oltp).unwrap();
        let sequential = Load::find(&lab, Kind::Sequential).unwrap();
        let [own, packed] = &oltp[..] else { panic!("{} layouts", oltp.len()) };
        let runs = [own, packed].map(|load| load.run(&lab, "page", 0.1).unwrap());
        fs::remove_dir_all(&folder).unwrap();
        assert!(oltp.iter().all(|load| load.describe().contains("recorded trace Fin1_small.trace")));
        assert!(sequential.iter().all(|load| load.describe().contains("SYNTHETIC")));
        assert_eq!(runs[0].device.geometry.blocks(), 8192);
        // 20,000 pages of 4 KiB are 625 blocks of 64 pages of 2 KiB, and a tenth more.
        let device = &runs[1].device;
        assert!((690..=700).contains(&device.geometry.blocks()), "{}", device.geometry.blocks());
        assert!(device.logical_pages >= 40_000);
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_an_error() {
        let lab = Lab { traces: Some("/no/such/folder".into()), ..Lab::default() };
        assert!(Load::find(&lab, Kind::Oltp).is_err());
    }
}
