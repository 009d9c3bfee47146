//! What to explore.

use crate::faults::Fault;
use crate::shape;
use std::thread;

/// At which operations of the workload power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At the first, second, fourth, eighth, …, with every outcome.
    Log,
    /// At every sixteenth, with every outcome.
    Linear,
    /// At every one, with every outcome.
    Exhaustive,
    /// At one in eight by chance, with one outcome by chance.
    Random,
}

impl Mode {
    /// Every mode, in the order of the help.
    pub const ALL: [Self; 4] = [Self::Log, Self::Linear, Self::Exhaustive, Self::Random];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Linear => "linear",
            Self::Exhaustive => "exhaustive",
            Self::Random => "random",
        }
    }

    /// The mode with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// What to explore. Rounds of new workloads follow each other until `cuts` is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// FTLs by name; none for all.
    pub ftls: Vec<String>,
    /// At which operations power is cut first.
    pub mode: Mode,
    /// Cut points for each FTL.
    pub cuts: u64,
    /// Cuts in a row, 1 to 3. The second and third come at every operation of the mount, then at
    /// the first, second, fourth, … of what follows, with outcomes by chance.
    pub depth: u32,
    /// Whether FTLs that need a battery have one. Without, they may lose what was acknowledged; how
    /// much is counted.
    pub battery: bool,
    /// Decides everything that is left open.
    pub seed: u64,
    /// Faults besides cuts; those that can be are laid over the cuts in turn, round by round.
    pub faults: Vec<Fault>,
    /// The shape of device, by name in [`crate::SHAPES`], or [`crate::DRAWN`]; `None` for each in
    /// turn.
    pub geometry: Option<String>,
    /// Steps of a workload.
    pub steps: u32,
    /// Steps done after a recovery.
    pub tail: u32,
    /// Images tried, and as many checkpoints with wrong bits, if [`Fault::Images`] is wanted.
    pub images: u32,
    /// Power cuts that one device goes through, if [`Fault::Endurance`] is wanted.
    pub endurance: u32,
    /// Every which page is worn, if [`Fault::Worn`] is wanted.
    pub worn_step: u32,
    /// Of the worn pages, the images and the shapes that go through cut after cut, one in so many
    /// has its turn. The next seed takes the next ones.
    pub one_in: u32,
    /// FTLs explored at a time; as many as the machine has cores, unless told otherwise.
    pub jobs: u16,
}

impl Default for Options {
    /// The whole matrix: 100,000 cut points for each FTL, every fault that all of them stand up to.
    fn default() -> Self {
        Self {
            ftls: Vec::new(),
            mode: Mode::Exhaustive,
            cuts: 100_000,
            depth: 1,
            battery: true,
            seed: 1,
            faults: Fault::ALL.to_vec(),
            geometry: None,
            steps: 100,
            tail: 30,
            images: 2000,
            endurance: 1000,
            worn_step: 1,
            one_in: 1,
            jobs: thread::available_parallelism().map_or(1, |cores| u16::try_from(cores.get()).unwrap_or(u16::MAX)),
        }
    }
}

/// Options that name something that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// No such FTL.
    #[error("there is no FTL '{name}'; there are {known}")]
    Ftl {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// No such shape of device.
    #[error("there is no geometry '{name}'; there are {known}")]
    Geometry {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A number out of its range.
    #[error("{what} is {value}; it must be {range}")]
    Range {
        /// Which option.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// What is possible.
        range: &'static str,
    },
}

impl Options {
    /// A sample of everything in a few seconds for each FTL: for continuous integration.
    #[must_use]
    pub fn sample() -> Self {
        Self { mode: Mode::Linear, cuts: 6000, depth: 2, images: 210, endurance: 200, worn_step: 31, ..Self::default() }
    }

    /// So little of everything that it takes less than a second: to compare what two builds do, by
    /// [`FtlReport::trail`](crate::FtlReport::trail).
    #[must_use]
    pub fn trail(ftl: &str, shape: &str) -> Self {
        let (ftls, geometry) = (vec![ftl.to_owned()], Some(shape.to_owned()));
        let options = Self { ftls, geometry, seed: 5, jobs: 1, ..Self::default() };
        Self { cuts: 300, depth: 2, images: 7, endurance: 25, worn_step: 61, ..options }
    }

    pub(crate) fn check<'a>(&self, known: impl Iterator<Item = &'a str> + Clone) -> Result<(), OptionsError> {
        if let Some(name) = self.ftls.iter().find(|name| !known.clone().any(|other| other == *name)) {
            return Err(OptionsError::Ftl { name: name.clone(), known: known.collect::<Vec<_>>().join(", ") });
        }
        if let Some(name) = self.geometry.as_ref().filter(|name| !shape::shape_names().any(|known| known == *name)) {
            let known = shape::shape_names().collect::<Vec<_>>().join(", ");
            return Err(OptionsError::Geometry { name: name.clone(), known });
        }
        let ranges: [(_, _, _, u64, u64); 6] = [
            ("depth", self.depth.into(), "1 to 3", 1, 3),
            ("steps", self.steps.into(), "1 to 2000", 1, 2000),
            ("tail", self.tail.into(), "at most 2000", 0, 2000),
            ("jobs", self.jobs.into(), "1 or more", 1, u64::MAX),
            ("worn_step", self.worn_step.into(), "1 or more", 1, u64::MAX),
            ("one_in", self.one_in.into(), "1 or more", 1, u64::MAX),
        ];
        match ranges.into_iter().find(|(_, value, _, from, to)| !(*from..=*to).contains(value)) {
            Some((what, value, range, ..)) => Err(OptionsError::Range { what, value, range }),
            None => Ok(()),
        }
    }
}
