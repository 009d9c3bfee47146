//! A case: everything that decides how one exploration goes, and the id that holds all of it.
//!
//! An id is the FTL's name, a dash, and in hexadecimal: format version, flags, shape, logical
//! pages, seed, faults, what is done, the workload (its length if the seed decides it, else every
//! step), the steps after recovery, the cuts, a check byte. Numbers are in groups of seven bits,
//! least significant first, the high bit saying that more follow.
//!
//! Versions 1 and 2 (with and without a battery) have no flags and a byte of faults. Reads are no
//! operations there.

use crate::drawn::drawn;
use crate::faults::Fault;
use crate::model::Model;
use crate::shape::{DRAWN_NUMBER, SHAPES, Shape};
use crate::workload::{Step, generate};
use ftl::ftls::Durability;
use nand::{Blemish, Cut, CutOutcome};

/// One exploration, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) ftl: String,
    /// Row of [`SHAPES`], or [`DRAWN_NUMBER`].
    pub(crate) shape: u8,
    pub(crate) logical_pages: u32,
    pub(crate) seed: u64,
    /// Bits of [`crate::Fault`].
    pub(crate) faults: u16,
    /// Whether an FTL that needs a battery has one.
    pub(crate) battery: bool,
    /// Reads are no operations, and a failed program leaves a page that cannot be read: so were
    /// cases of versions 1 and 2.
    pub(crate) classic: bool,
    pub(crate) scenario: Scenario,
    pub(crate) work: Work,
    /// Steps done after a recovery.
    pub(crate) tail: u32,
    /// The cuts: the first of the workload, the next of the recovery from it and what followed, and
    /// so on.
    pub(crate) path: Vec<Loss>,
}

/// A loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) cut: Cut,
    /// The battery died while it saved what the loss before had left in RAM.
    pub(crate) saving: bool,
}

impl From<Cut> for Loss {
    fn from(cut: Cut) -> Self {
        Self { cut, saving: false }
    }
}

/// In an id the bit of an outcome that says [`Loss::saving`].
const SAVING: u8 = 0x80;

/// What is done with the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// Power is cut.
    Cuts,
    /// A page is harmed after the workload, or two are.
    Worn(Worn),
    /// The device holds something that this FTL did not write, or not so; `n` says what.
    Image { n: u32 },
    /// The same device loses power so many times.
    Endurance { rounds: u32 },
    /// Bits of checkpoint pages are wrong; `n` says which.
    Flipped { n: u32 },
}

/// Pages that are harmed after the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Worn {
    pub(crate) ppn: u32,
    pub(crate) harm: Harm,
    /// Before a mount; else while power stays on.
    pub(crate) mounted: bool,
    /// Another page that is harmed too.
    pub(crate) other: Option<u32>,
}

/// How a page is harmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    Unreadable,
    DataUnreadable,
    /// One more wrong bit than can be corrected.
    BeyondCorrection,
    /// As many wrong bits as can be corrected.
    Correctable,
    /// Its data can be read once more: well while a mount looks, and then no more.
    ReadsOnce,
    /// Its data can be read twice more.
    ReadsTwice,
}

impl Harm {
    /// The order is part of replay ids: new ones come last.
    pub(crate) const ALL: [Self; 6] = [
        Self::Unreadable,
        Self::DataUnreadable,
        Self::BeyondCorrection,
        Self::Correctable,
        Self::ReadsOnce,
        Self::ReadsTwice,
    ];

    pub(crate) const fn blemish(self, correctable_bits: u32) -> Blemish {
        match self {
            Self::Unreadable => Blemish::Unreadable,
            Self::DataUnreadable => Blemish::DataUnreadable,
            Self::BeyondCorrection => Blemish::BitFlips(correctable_bits + 1),
            Self::Correctable => Blemish::BitFlips(correctable_bits),
            Self::ReadsOnce => Blemish::Fading(1),
            Self::ReadsTwice => Blemish::Fading(2),
        }
    }

    /// Whether it can be read for a while.
    pub(crate) const fn fades(self) -> bool {
        matches!(self, Self::ReadsOnce | Self::ReadsTwice)
    }

    /// Whether the spare area can be read for ever.
    pub(crate) const fn spares_oob(self) -> bool {
        matches!(self, Self::DataUnreadable) || self.fades()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// So many steps that the seed decides.
    Generated(u32),
    /// These.
    Given(Vec<Step>),
}

/// Why an id cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The id is not one that this version prints.
    #[error("'{id}' is not an id of this version: {reason}")]
    Id {
        /// The id.
        id: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The table has no such FTL, or it cannot be mounted.
    #[error("there is no mountable FTL '{ftl}'")]
    Ftl {
        /// Its name.
        ftl: String,
    },
}

const VERSION: u8 = 3;

/// Versions of ids of classic cases, with and without a battery.
const CLASSIC: [u8; 2] = [1, 2];

/// The flag of a case without a battery.
const NO_BATTERY: u8 = 1;

impl Case {
    pub(crate) fn steps(&self) -> Vec<Step> {
        match &self.work {
            Work::Generated(steps) => generate(self.seed, *steps, self.logical_pages),
            Work::Given(steps) => steps.clone(),
        }
    }

    /// Whether pages fade and lie, and worn ones have to be errors.
    pub(crate) const fn is_harsh(&self) -> bool {
        self.faults & Fault::Fading.bit() != 0
    }

    pub(crate) fn shape(&self) -> Shape {
        match self.shape {
            DRAWN_NUMBER => drawn(self.seed),
            row => SHAPES[usize::from(row) % SHAPES.len()],
        }
    }

    pub(crate) fn model(&self, durable: Durability) -> Model {
        let model = Model::new(durable, self.logical_pages);
        let model = if self.is_harsh() { model } else { model.lenient() };
        if durable == Durability::Battery && !self.battery { model.without_battery() } else { model }
    }

    /// The id. [`Case::parse`] gives the case back.
    pub(crate) fn id(&self) -> String {
        let flags = if self.battery { 0 } else { NO_BATTERY };
        let head =
            if self.classic { vec![CLASSIC[usize::from(flags)], self.shape] } else { vec![VERSION, flags, self.shape] };
        let mut out = Bytes(head);
        out.number(self.logical_pages.into());
        out.number(self.seed);
        if self.classic {
            out.0.push(self.faults as u8);
        } else {
            out.number(self.faults.into());
        }
        match self.scenario {
            Scenario::Cuts => out.0.push(0),
            Scenario::Worn(Worn { ppn, harm, mounted, other }) => {
                out.0.extend([if other.is_some() { 4 } else { 1 }, harm as u8, u8::from(mounted)]);
                [Some(ppn), other].into_iter().flatten().for_each(|ppn| out.number(ppn.into()));
            }
            Scenario::Image { n } => {
                out.0.push(2);
                out.number(n.into());
            }
            Scenario::Endurance { rounds } => {
                out.0.push(3);
                out.number(rounds.into());
            }
            Scenario::Flipped { n } => {
                out.0.push(5);
                out.number(n.into());
            }
        }
        match &self.work {
            Work::Generated(steps) => {
                out.0.push(0);
                out.number((*steps).into());
            }
            Work::Given(steps) => {
                out.0.push(1);
                out.number(steps.len() as u64);
                steps.iter().for_each(|step| out.step(*step));
            }
        }
        out.number(self.tail.into());
        for Loss { cut, saving } in &self.path {
            out.number(cut.at);
            let outcome = CutOutcome::ALL.iter().position(|o| *o == cut.outcome).unwrap_or(0) as u8;
            out.0.push(outcome | if *saving { SAVING } else { 0 });
        }
        let check = checksum(&out.0);
        out.0.push(check);
        let hex: String = out.0.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{hex}", self.ftl)
    }

    /// The case that an id stands for.
    pub(crate) fn parse(id: &str) -> Result<Self, ReplayError> {
        Self::read(id).map_err(|reason| ReplayError::Id { id: id.into(), reason })
    }

    fn read(id: &str) -> Result<Self, &'static str> {
        let (ftl, hex) = id.trim().rsplit_once('-').ok_or("no dash parts a name from a number")?;
        let digits: Option<Vec<u8>> = hex.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
        let digits = digits.ok_or("what follows the dash is not hexadecimal")?;
        let mut bytes: Vec<u8> = digits.chunks(2).map(|pair| pair.iter().fold(0, |n, digit| n << 4 | digit)).collect();
        if digits.len() % 2 == 1 || bytes.pop().is_none_or(|check| check != checksum(&bytes)) {
            return Err("a digit is wrong or missing");
        }
        let mut input = Input(bytes.into_iter());
        let version = input.byte()?;
        let (classic, flags) = match CLASSIC.iter().position(|known| *known == version) {
            Some(flags) => (true, flags as u8),
            None if version == VERSION => (false, input.byte()?),
            None => return Err("it is of another version"),
        };
        if flags > NO_BATTERY {
            return Err("it has flags that this version does not know");
        }
        let battery = flags & NO_BATTERY == 0;
        let shape = input.byte()?;
        let logical_pages = input.short()?;
        let seed = input.number()?;
        let faults = if classic { input.byte()?.into() } else { input.number()? };
        let faults = u16::try_from(faults).map_err(|_| "it names faults that this version does not have")?;
        if (usize::from(shape) >= SHAPES.len() && shape != DRAWN_NUMBER) || logical_pages == 0 {
            return Err("it names a device that this version does not have");
        }
        let scenario = input.scenario()?;
        let work = match input.byte()? {
            0 => Work::Generated(input.short()?),
            _ => Work::Given((0..input.short()?).map(|_| input.step()).collect::<Result<_, _>>()?),
        };
        let tail = input.short()?;
        let mut path = Vec::new();
        while !input.0.as_slice().is_empty() {
            let at = input.number()?;
            let byte = input.byte()?;
            let outcome = CutOutcome::ALL.get(usize::from(byte & !SAVING)).ok_or("it names an unknown outcome")?;
            path.push(Loss { cut: Cut { at, outcome: *outcome }, saving: byte & SAVING != 0 });
        }
        Ok(Self { ftl: ftl.into(), shape, logical_pages, seed, faults, battery, classic, scenario, work, tail, path })
    }
}

pub(crate) fn checksum(bytes: &[u8]) -> u8 {
    let sum = bytes.iter().fold(0x811C_9DC5_u32, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    (sum ^ sum >> 8 ^ sum >> 16 ^ sum >> 24) as u8
}

struct Bytes(Vec<u8>);

impl Bytes {
    fn number(&mut self, mut number: u64) {
        while number >= 128 {
            self.0.push(number as u8 | 128);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn step(&mut self, step: Step) {
        let (kind, lpn, count) = match step {
            Step::Write { lpn, count } => (0, lpn, count),
            Step::Trim { lpn, count } => (1, lpn, count),
            Step::Read { lpn } => (2, lpn, 0),
            Step::Flush => return self.0.push(3),
            Step::Idle => return self.0.push(4),
        };
        self.0.push(kind);
        self.number(lpn.into());
        if kind < 2 {
            self.number(count.into());
        }
    }
}

struct Input(std::vec::IntoIter<u8>);

impl Input {
    fn byte(&mut self) -> Result<u8, &'static str> {
        self.0.next().ok_or("it is cut short")
    }

    fn number(&mut self) -> Result<u64, &'static str> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err("a number is too long")
    }

    fn short(&mut self) -> Result<u32, &'static str> {
        u32::try_from(self.number()?).map_err(|_| "a number is too large")
    }

    fn scenario(&mut self) -> Result<Scenario, &'static str> {
        Ok(match self.byte()? {
            0 => Scenario::Cuts,
            pages @ (1 | 4) => {
                let harm = *Harm::ALL.get(usize::from(self.byte()?)).ok_or("it names an unknown harm")?;
                let (mounted, ppn) = (self.byte()? != 0, self.short()?);
                let other = if pages == 4 { Some(self.short()?) } else { None };
                Scenario::Worn(Worn { ppn, harm, mounted, other })
            }
            2 => Scenario::Image { n: self.short()? },
            3 => Scenario::Endurance { rounds: self.short()? },
            5 => Scenario::Flipped { n: self.short()? },
            _ => return Err("it names an unknown scenario"),
        })
    }

    fn step(&mut self) -> Result<Step, &'static str> {
        Ok(match self.byte()? {
            0 => Step::Write { lpn: self.short()?, count: self.short()? },
            1 => Step::Trim { lpn: self.short()?, count: self.short()? },
            2 => Step::Read { lpn: self.short()? },
            3 => Step::Flush,
            4 => Step::Idle,
            _ => return Err("it names an unknown step"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_a_wrong_digit_is_noticed() {
        let cuts = CutOutcome::ALL.iter().map(|outcome| Cut { at: 300, outcome: *outcome });
        let path = cuts.zip([false, true].into_iter().cycle()).map(|(cut, saving)| Loss { cut, saving }).collect();
        let all = vec![
            Step::Write { lpn: 300, count: 2 },
            Step::Trim { lpn: 3, count: 200 },
            Step::Read { lpn: 1 },
            Step::Flush,
            Step::Idle,
        ];
        let scenarios = [
            Scenario::Cuts,
            Scenario::Worn(Worn { ppn: 77, harm: Harm::DataUnreadable, mounted: true, other: None }),
            Scenario::Worn(Worn { ppn: 77, harm: Harm::Unreadable, mounted: false, other: Some(300) }),
            Scenario::Worn(Worn { ppn: 77, harm: Harm::ReadsTwice, mounted: true, other: None }),
            Scenario::Image { n: 5 },
            Scenario::Endurance { rounds: 1000 },
            Scenario::Flipped { n: 200 },
        ];
        for (scenario, work) in scenarios.into_iter().zip([0, 1].into_iter().cycle()) {
            let work = if work == 0 { Work::Generated(200) } else { Work::Given(all.clone()) };
            let case = Case {
                ftl: "a-name".into(),
                shape: if scenario == Scenario::Cuts { DRAWN_NUMBER } else { 1 },
                logical_pages: 90,
                seed: u64::MAX - 3,
                faults: 5,
                battery: matches!(scenario, Scenario::Cuts),
                classic: matches!(scenario, Scenario::Image { .. }),
                scenario,
                work,
                tail: 40,
                path: Vec::clone(&path),
            };
            let id = case.id();
            assert_eq!(Case::parse(&id), Ok(case));
            let mut wrong = id.into_bytes();
            let at = wrong.len() - 5;
            wrong[at] = if wrong[at] == b'0' { b'1' } else { b'0' };
            assert!(Case::parse(&String::from_utf8(wrong).unwrap()).is_err());
        }
        for id in ["", "page", "page-", "page-01", "page-zz", "page-0"] {
            assert!(Case::parse(id).is_err(), "{id}");
        }
    }
}
