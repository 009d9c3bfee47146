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

    /// What stands in for it.
    const fn synthetic(self) -> &'static str {
        match self {
            Self::Sequential => "hotcold:writes=60,space=20,scatter=0,size=4KiB*60+64KiB*25+512KiB*15,align=4KiB",
            Self::Oltp => "hotcold:writes=64,space=20,scatter=0,footprint=30,size=4KiB*60+8KiB*30+16KiB*10,align=4KiB",
        }
    }

    /// How often a recorded trace is played. The paper's PC trace is short; its OLTP trace writes
    /// the device many times, of which the excerpts at hand are a small part.
    const fn laps(self) -> u64 {
        match self {
            Self::Sequential => 1,
            Self::Oltp => 16,
        }
    }

    /// Pages written of a synthetic workload, over the logical pages.
    const fn writes(self) -> u64 {
        match self {
            Self::Sequential => 2,
            Self::Oltp => 8,
        }
    }
}

/// A workload with the device that fits it.
pub struct Load {
    kind: Kind,
    trace: Option<Arc<Trace>>,
}

impl Load {
    /// The recorded trace of this kind in the lab's folder, or a synthetic workload.
    ///
    /// # Errors
    /// [`SimError::Workload`] if the folder or the trace cannot be read.
    pub fn find(lab: &Lab, kind: Kind) -> Result<Self, SimError> {
        Ok(Self { kind, trace: recorded(lab, kind.files())?.map(Arc::new) })
    }

    /// What it is, in a sentence that says whether it is real.
    pub fn describe(&self) -> String {
        let kind = self.kind.name();
        match &self.trace {
            Some(trace) => format!(
                "{kind}: recorded trace {}, {} requests, played {} times on a device made for the pages it touches; an \
                 excerpt or another trace than the paper's shows its own behaviour",
                trace.name().rsplit('/').next().unwrap_or_default(),
                trace.records().len(),
                self.kind.laps()
            ),
            None => format!(
                "{kind}: SYNTHETIC, `{}`, standing in for the paper's trace; {} pages written for each logical page \
                 (--traces names a folder of recorded ones)",
                self.kind.synthetic(),
                self.kind.writes()
            ),
        }
    }

    /// A device with this share of its blocks over-provisioned: the paper's, or for a trace one
    /// that its pages fill.
    fn device(&self, lab: &Lab, over_provisioned: f64) -> Result<DevicePlan, SimError> {
        let ratio = 1.0 - over_provisioned;
        let shape = Shape { logical_ratio: Some(ratio), ..Shape::share(share_of_device(lab)) };
        let device = lab.device(PROFILE, shape)?;
        let Some(trace) = &self.trace else { return Ok(device) };
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
    /// # Errors
    /// [`SimError`] if device or workload cannot be made.
    pub fn run(&self, lab: &Lab, ftl: &str, over_provisioned: f64) -> Result<RunSpec, SimError> {
        let device = self.device(lab, over_provisioned)?;
        let workload = match &self.trace {
            Some(trace) => WorkloadSpec::replay(trace.clone(), Map::Dense, Some(self.kind.laps())),
            None => WorkloadSpec::synthetic(self.kind.synthetic())?,
        };
        let writes = u64::from(device.logical_pages) * self.kind.writes();
        let mut spec = RunSpec::new(ftl, device, workload);
        spec.writes = if self.trace.is_some() { 0 } else { writes };
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
    fn without_traces_the_load_is_synthetic_and_says_so() {
        let lab = Lab { scale: 1.0 / 4096.0, ..Lab::default() };
        for kind in Kind::ALL {
            let load = Load::find(&lab, kind).unwrap();
            assert!(load.describe().contains("SYNTHETIC"));
            let run = load.run(&lab, "page", 0.1).unwrap();
            assert_eq!(run.device.geometry.blocks(), 512);
        }
    }

    #[test]
    fn a_recorded_trace_gets_a_device_that_it_fills() {
        let folder = std::env::temp_dir().join(format!("openftl-loads-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let lines: String = (0..20_000).map(|i| format!("{i}.5 0 {} 8 0\n", i * 8)).collect();
        fs::write(folder.join("Fin1_small.trace"), lines).unwrap();
        fs::write(folder.join("unrelated.trace"), "").unwrap();
        let lab = Lab { traces: Some(folder.clone()), ..Lab::default() };
        let oltp = Load::find(&lab, Kind::Oltp).unwrap();
        let run = oltp.run(&lab, "page", 0.1).unwrap();
        let sequential = Load::find(&lab, Kind::Sequential).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(oltp.describe().contains("recorded trace Fin1_small.trace"));
        assert!(sequential.describe().contains("SYNTHETIC"));
        // 20,000 pages of 4 KiB are 625 blocks of 64 pages of 2 KiB, and a tenth more.
        assert!((690..=700).contains(&run.device.geometry.blocks()), "{}", run.device.geometry.blocks());
        assert!(run.device.logical_pages >= 40_000);
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_an_error() {
        let lab = Lab { traces: Some("/no/such/folder".into()), ..Lab::default() };
        assert!(Load::find(&lab, Kind::Oltp).is_err());
    }
}
