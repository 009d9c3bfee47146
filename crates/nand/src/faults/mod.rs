//! Faults laid over a device: power cuts, failures, worn and torn pages.
//!
//! The device below stays pristine. A torn page is programmed in full down there, and only
//! looks torn from above; so the laws about it are those of any programmed page, and a test can
//! compare with the truth through [`Faulty::inner`].

mod made_up;
mod plan;

pub use plan::{Blemish, Cut, CutOutcome, FaultPlan, Pairing};

use crate::addr::{BlockId, Ppn};
use crate::contract::{Nand, Snapshot};
use crate::error::{Law, NandError};
use crate::flags::Flags;
use crate::geometry::{Capabilities, Geometry};
use crate::laws::{illegal, illegal_block};
use crate::spare::Spare;
use alloc::collections::{BTreeMap, BTreeSet};

/// A device with faults laid over it.
#[derive(Clone, Debug)]
pub struct Faulty<N> {
    inner: N,
    plan: FaultPlan,
    /// Until the block is erased, by page.
    blemishes: BTreeMap<u32, Blemish>,
    /// Blocks whose erase was cut short.
    half_erased: BTreeSet<u32>,
    /// Pages read of each block since it was erased, if reading disturbs.
    disturbed: BTreeMap<u32, u32>,
    /// Reads disturb, as far as the plan says so.
    disturbs: bool,
    /// Looks at pages that answer by chance.
    chances: u64,
    ops: u64,
    powered: bool,
    corrected: u32,
}

/// Looks that a page of a quietly half-erased block may still answer.
const MOST_LOOKS: u8 = 8;

/// What a read may look at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Spare,
}

/// What a look at a page shows, if it can be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// What is on the device below.
    Truth,
    /// An erased page.
    Blank,
    /// A spare area that nobody wrote.
    Garbage,
    /// One of which somebody wrote most.
    Altered,
}

impl<N: Nand> Faulty<N> {
    /// Lays the plan's faults over a device.
    pub fn new(inner: N, plan: FaultPlan) -> Self {
        Self {
            inner,
            plan,
            blemishes: BTreeMap::new(),
            half_erased: BTreeSet::new(),
            disturbed: BTreeMap::new(),
            disturbs: true,
            chances: 0,
            ops: 0,
            powered: true,
            corrected: 0,
        }
    }

    /// The device below, without faults.
    pub fn inner(&self) -> &N {
        &self.inner
    }

    /// The device below; what is done to it is not counted and not failed.
    pub fn inner_mut(&mut self) -> &mut N {
        &mut self.inner
    }

    /// Takes the faults off.
    pub fn into_inner(self) -> N {
        self.inner
    }

    /// What is to go wrong.
    pub fn plan(&self) -> &FaultPlan {
        &self.plan
    }

    /// What is to go wrong, to change; operations are still counted from the beginning.
    pub fn plan_mut(&mut self) -> &mut FaultPlan {
        &mut self.plan
    }

    /// Whether reads disturb, as far as the plan says so. An observer that reads all pages at once,
    /// so that no FTL can move what is read often, takes that away for so long.
    pub const fn let_reads_disturb(&mut self, disturbs: bool) {
        self.disturbs = disturbs;
    }

    /// Operations so far, the one that was cut included.
    pub fn ops(&self) -> u64 {
        self.ops
    }

    /// Whether power is on.
    pub fn is_powered(&self) -> bool {
        self.powered
    }

    /// Switches power off between two operations.
    pub fn power_down(&mut self) {
        self.powered = false;
    }

    /// Switches power on again. Torn and worn pages stay as they are; the count of operations goes
    /// on.
    pub fn power_up(&mut self) {
        self.powered = true;
    }

    /// Harms a page, until its block is erased.
    pub fn damage(&mut self, ppn: Ppn, blemish: Blemish) {
        self.blemishes.insert(ppn.0, blemish);
    }

    /// What is wrong with a page beyond the defects that the plan gives it for ever.
    pub fn blemish(&self, ppn: Ppn) -> Option<Blemish> {
        self.blemishes.get(&ppn.0).copied()
    }

    /// Counts an operation and answers its number.
    fn step(&mut self) -> Result<u64, NandError> {
        if !self.powered {
            return Err(NandError::PowerLost);
        }
        let op = self.ops;
        self.ops += 1;
        Ok(op)
    }

    fn lose_power<T>(&mut self) -> Result<T, NandError> {
        debug_assert!(self.powered, "power is lost twice");
        self.powered = false;
        Err(NandError::PowerLost)
    }

    fn is_factory_bad(&self, block: BlockId) -> bool {
        self.plan.factory_bad.contains(&block)
    }

    /// Wears out the page that was read, or answers why it cannot be.
    fn look(&mut self, ppn: Ppn, part: Part) -> Result<Look, NandError> {
        self.corrected = 0;
        let flips = if part == Part::Whole { self.disturb(ppn) } else { 0 };
        let defect = if self.plan.unreadable_pages.contains(&ppn) {
            Some(Blemish::Unreadable)
        } else {
            let known = self.plan.bit_flips.iter().find(|known| known.0 == ppn).map_or(0, |known| known.1);
            (known + flips > 0).then_some(Blemish::BitFlips(known + flips))
        };
        let blemish = match self.blemish(ppn) {
            // A torn page in a worn place is torn first.
            Some(Blemish::BitFlips(bits)) => Some(Blemish::BitFlips(bits + flips)),
            Some(blemish) => Some(blemish),
            None => defect,
        };
        let Some(blemish) = blemish else { return Ok(Look::Truth) };
        if ppn.0 >= self.geometry().pages() || self.inner.read_spare(ppn) == Ok(None) {
            // Nothing is there that could be harmed; the device below says so.
            return Ok(Look::Truth);
        }
        let lost = Err(NandError::Uncorrectable { ppn });
        match (blemish, part) {
            (Blemish::Unreadable | Blemish::Vanishing(0), _) => lost,
            (Blemish::DataUnreadable | Blemish::Fading(0) | Blemish::Garbage | Blemish::Altered, Part::Whole) => lost,
            (Blemish::DataUnreadable | Blemish::Fading(_) | Blemish::Flaky, Part::Spare) => Ok(Look::Truth),
            (Blemish::Fading(left), Part::Whole) => {
                self.blemishes.insert(ppn.0, Blemish::Fading(left - 1));
                Ok(Look::Truth)
            }
            (Blemish::Vanishing(left), _) => {
                self.blemishes.insert(ppn.0, Blemish::Vanishing(left - 1));
                Ok(Look::Truth)
            }
            (Blemish::Flaky, Part::Whole) | (Blemish::FlakyWhole, _) => {
                self.chances += 1;
                if self.plan.roll(self.chances, ppn.0.into()) & 1 == 0 { lost } else { Ok(Look::Truth) }
            }
            (Blemish::Paling(left), _) => {
                let now = left.checked_sub(1).map_or(Blemish::Blank, Blemish::Paling);
                self.blemishes.insert(ppn.0, now);
                Ok(if left == 0 { Look::Blank } else { Look::Truth })
            }
            (Blemish::Garbage, Part::Spare) => Ok(Look::Garbage),
            (Blemish::Altered, Part::Spare) => Ok(Look::Altered),
            (Blemish::Blank, _) => Ok(Look::Blank),
            (Blemish::BitFlips(bits), _) if bits > self.plan.correctable_bits => lost,
            (Blemish::BitFlips(bits), _) => {
                self.corrected = bits;
                debug_assert!(bits > 0);
                Ok(Look::Truth)
            }
        }
    }

    /// Counts a read if the plan wants it, and looks at the page.
    fn sense(&mut self, ppn: Ppn, part: Part) -> Result<Look, NandError> {
        if !self.powered {
            return Err(NandError::PowerLost);
        }
        if self.plan.count_reads {
            let op = self.step()?;
            if self.plan.cut_at(op).is_some() {
                return self.lose_power();
            }
        }
        self.look(ppn, part)
    }

    /// Programs a page through `act`, with whatever is to go wrong at operation `op`.
    fn program_at(
        &mut self,
        op: u64,
        operation: &'static str,
        ppn: Ppn,
        act: impl FnOnce(&mut N) -> Result<(), NandError>,
    ) -> Result<(), NandError> {
        let cut = self.plan.cut_at(op);
        if cut.is_some() {
            self.powered = false;
        }
        let block = self.geometry().block_of(ppn);
        if self.is_factory_bad(block) {
            return Err(illegal(operation, ppn, Law::BadBlock));
        }
        if self.half_erased.contains(&block.0) {
            return Err(illegal(operation, ppn, Law::EraseBeforeProgram));
        }
        if cut == Some(CutOutcome::NotDone) {
            return Err(NandError::PowerLost);
        }
        act(&mut self.inner)?;
        match cut {
            Some(outcome) => {
                self.tear(ppn, outcome);
                Err(NandError::PowerLost)
            }
            None if self.plan.fails_program(op, ppn) => {
                self.fail(op, ppn);
                Err(NandError::ProgramFailed { ppn })
            }
            None => Ok(()),
        }
    }

    /// What a cut leaves of a page that was being programmed.
    fn tear(&mut self, ppn: Ppn, outcome: CutOutcome) {
        let blemish = match outcome {
            CutOutcome::NotDone | CutOutcome::Done => return,
            CutOutcome::Torn
            | CutOutcome::HalfErased
            | CutOutcome::HalfErasedOddly
            | CutOutcome::HalfErasedQuietly
            | CutOutcome::HalfErasedFalsely
            | CutOutcome::Reading => Blemish::Unreadable,
            CutOutcome::TornData => Blemish::DataUnreadable,
            CutOutcome::TornOnce => Blemish::Vanishing(1),
            CutOutcome::Fading(reads) => Blemish::Fading(reads),
            CutOutcome::Vanishing(looks) => Blemish::Vanishing(looks),
            CutOutcome::Flaky => Blemish::Flaky,
            CutOutcome::FlakyWhole => Blemish::FlakyWhole,
            CutOutcome::Garbage => Blemish::Garbage,
            CutOutcome::Altered => Blemish::Altered,
            CutOutcome::Paling(looks) => Blemish::Paling(looks),
            CutOutcome::Weak => Blemish::Blank,
            CutOutcome::PartnerLost => {
                let geometry = *self.geometry();
                let block = geometry.block_of(ppn);
                for offset in self.plan.pairing.partners(geometry.offset_of(ppn)) {
                    debug_assert!(offset < geometry.offset_of(ppn), "a page of a word line is paired with a later one");
                    self.damage(geometry.page_at(block, offset), Blemish::Unreadable);
                }
                Blemish::Unreadable
            }
        };
        debug_assert!(ppn.0 < self.geometry().pages(), "{ppn} is torn and no page");
        self.damage(ppn, blemish);
    }

    /// What a failed program leaves of its page.
    fn fail(&mut self, op: u64, ppn: Ppn) {
        debug_assert!(self.powered && op < self.ops, "operation {op} fails before it is done");
        const LEFT: [CutOutcome; 8] = [
            CutOutcome::Torn,
            CutOutcome::Done,
            CutOutcome::TornData,
            CutOutcome::Weak,
            CutOutcome::Fading(1),
            CutOutcome::Vanishing(2),
            CutOutcome::Flaky,
            CutOutcome::Garbage,
        ];
        let roll = if self.plan.odd_failures { self.plan.roll(op, u64::from(ppn.0)) } else { 0 };
        self.tear(ppn, LEFT[(roll % LEFT.len() as u64) as usize]);
    }

    /// Counts a page read, and answers how many of the page's bits are wrong for having been read
    /// so often.
    fn disturb(&mut self, ppn: Ppn) -> u32 {
        let Some(reads) = self.plan.reads_per_flip else { return 0 };
        let seen = self.disturbed.entry(self.inner.geometry().block_of(ppn).0).or_default();
        *seen += u32::from(self.disturbs);
        *seen / reads.max(1)
    }

    fn forget_blemishes(&mut self, block: BlockId) {
        self.disturbed.remove(&block.0);
        self.half_erased.remove(&block.0);
        if !self.blemishes.is_empty() {
            let (start, pages) = (self.geometry().page_at(block, 0).0, self.geometry().pages_per_block());
            self.blemishes.retain(|&ppn, _| !(start..start + pages).contains(&ppn));
            debug_assert!(self.blemishes.range(start..start + pages).next().is_none());
        }
    }

    fn half_erase(&mut self, op: u64, block: BlockId, outcome: CutOutcome) {
        debug_assert!(block.0 < self.geometry().blocks() && !self.is_bad(block));
        self.half_erased.insert(block.0);
        let geometry = *self.geometry();
        for offset in 0..geometry.pages_per_block() {
            let ppn = geometry.page_at(block, offset);
            let roll = self.plan.roll(op, offset.into());
            match roll % 4 {
                2 if outcome == CutOutcome::HalfErasedFalsely && self.has_spare(ppn) => {
                    self.damage(ppn, Blemish::Altered);
                }
                3 if outcome == CutOutcome::HalfErasedFalsely => self.fade(ppn, roll >> 2),
                1 if outcome == CutOutcome::HalfErasedFalsely => self.damage(ppn, Blemish::Blank),
                2 | 3 if outcome == CutOutcome::HalfErasedQuietly => self.fade(ppn, roll >> 2),
                0 if outcome == CutOutcome::HalfErasedOddly && self.has_spare(ppn) => {
                    let odd = [Blemish::Fading(1), Blemish::Flaky, Blemish::FlakyWhole, Blemish::Garbage];
                    self.damage(ppn, odd[(roll >> 2) as usize % odd.len()]);
                }
                0 => {}
                1 if outcome == CutOutcome::HalfErasedQuietly => self.damage(ppn, Blemish::Blank),
                2 if self.has_spare(ppn) => self.damage(ppn, Blemish::DataUnreadable),
                1 | 2 => self.damage(ppn, Blemish::Unreadable),
                _ => self.damage(ppn, Blemish::Blank),
            }
        }
    }

    /// Has a page read well a few times more, if nothing was wrong with it.
    fn fade(&mut self, ppn: Ppn, roll: u64) {
        if self.blemish(ppn).is_none() {
            let left = 1 + (roll >> 1) as u8 % MOST_LOOKS;
            debug_assert!((1..=MOST_LOOKS).contains(&left));
            self.damage(ppn, if roll & 1 == 0 { Blemish::Vanishing(left) } else { Blemish::Fading(left) });
        }
    }

    /// Whether a page was left with a spare area that can be read: half an erase gives none back.
    fn has_spare(&self, ppn: Ppn) -> bool {
        match self.blemish(ppn) {
            Some(
                Blemish::Unreadable
                | Blemish::Blank
                | Blemish::Garbage
                | Blemish::Altered
                | Blemish::Vanishing(_)
                | Blemish::Paling(_)
                | Blemish::FlakyWhole,
            ) => false,
            Some(Blemish::BitFlips(bits)) => bits <= self.plan.correctable_bits,
            Some(Blemish::DataUnreadable | Blemish::Fading(_) | Blemish::Flaky) | None => true,
        }
    }
}

impl<N: Nand + Snapshot> Snapshot for Faulty<N> {
    fn snapshot(&mut self) -> Self {
        Self {
            inner: self.inner.snapshot(),
            plan: self.plan.clone(),
            blemishes: self.blemishes.clone(),
            half_erased: self.half_erased.clone(),
            disturbed: self.disturbed.clone(),
            ..*self
        }
    }
}

impl<N: Nand> Faulty<N> {
    /// Erases a block that is about to be marked bad, on a device that does so; whether that works
    /// is nothing to the mark.
    fn erase_for_mark(&mut self, op: u64, block: BlockId) -> Result<(), NandError> {
        if !self.plan.marks_erase || block.0 >= self.geometry().blocks() || self.is_bad(block) {
            return Ok(());
        }
        if self.plan.failing_blocks.contains(&block) {
            self.half_erase(op, block, CutOutcome::HalfErased);
        } else {
            self.inner.erase(block)?;
            self.forget_blemishes(block);
        }
        Ok(())
    }
}

impl<N: Nand> Nand for Faulty<N> {
    type Payload = N::Payload;

    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read(&mut self, ppn: Ppn, out: &mut Self::Payload) -> Result<Spare, NandError> {
        match self.sense(ppn, Part::Whole)? {
            Look::Blank => Err(NandError::Erased { ppn }),
            Look::Truth | Look::Garbage | Look::Altered => self.inner.read(ppn, out),
        }
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        match self.sense(ppn, Part::Whole)? {
            Look::Blank => Err(NandError::Erased { ppn }),
            Look::Truth | Look::Garbage | Look::Altered => self.inner.read_meta(ppn, out),
        }
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        match self.sense(ppn, Part::Spare)? {
            Look::Truth => self.inner.read_spare(ppn),
            Look::Blank => Ok(None),
            Look::Garbage => self.garbage(ppn),
            Look::Altered => self.altered(ppn),
        }
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        match self.sense(ppn, Part::Whole)? {
            Look::Blank => Err(NandError::Erased { ppn }),
            Look::Truth | Look::Garbage | Look::Altered => self.inner.probe(ppn),
        }
    }

    fn program(&mut self, ppn: Ppn, data: &Self::Payload, spare: &Spare) -> Result<(), NandError> {
        let op = self.step()?;
        self.program_at(op, "program", ppn, |inner| inner.program(ppn, data, spare))
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        let op = self.step()?;
        self.program_at(op, "program", ppn, |inner| inner.program_meta(ppn, data, spare))
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        let op = self.step()?;
        match self.look(from, Part::Whole) {
            Ok(Look::Truth | Look::Garbage | Look::Altered) => {
                self.program_at(op, "copy", to, |inner| inner.copy(from, to, spare))
            }
            _ if self.plan.cut_at(op).is_some() => self.lose_power(),
            Ok(Look::Blank) => Err(NandError::Erased { ppn: from }),
            Err(error) => Err(error),
        }
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        let op = self.step()?;
        let cut = self.plan.cut_at(op);
        if cut.is_some() {
            self.powered = false;
        }
        if self.is_bad(block) {
            return Err(illegal_block(self.geometry(), "erase", block, Law::BadBlock));
        }
        if block.0 >= self.geometry().blocks() {
            return Err(illegal_block(self.geometry(), "erase", block, Law::AddressInRange));
        }
        match cut {
            Some(CutOutcome::NotDone) => return Err(NandError::PowerLost),
            Some(CutOutcome::Done) | None => {}
            Some(outcome) => {
                self.half_erase(op, block, outcome);
                return Err(NandError::PowerLost);
            }
        }
        if cut.is_none() && self.plan.fails_erase(op, block) {
            self.half_erase(op, block, CutOutcome::HalfErased);
            return Err(NandError::EraseFailed { block });
        }
        self.inner.erase(block)?;
        debug_assert!(self.powered == cut.is_none());
        self.forget_blemishes(block);
        if cut.is_some() { Err(NandError::PowerLost) } else { Ok(()) }
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.inner.is_bad(block) || self.is_factory_bad(block)
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        let op = self.step()?;
        let Some(outcome) = self.plan.cut_at(op) else {
            self.erase_for_mark(op, block)?;
            return self.inner.mark_bad(block);
        };
        self.powered = false;
        let (erased, marked) = match outcome {
            CutOutcome::NotDone => (false, false),
            CutOutcome::Done => (true, true),
            _ => (self.plan.roll(op, 0) & 2 == 2, self.plan.roll(op, 0) & 1 == 1),
        };
        if erased || marked {
            self.erase_for_mark(op, block)?;
        } else if self.plan.marks_erase && outcome != CutOutcome::NotDone && !self.is_bad(block) {
            self.half_erase(op, block, CutOutcome::HalfErased);
        }
        if marked {
            self.inner.mark_bad(block)?;
        }
        Err(NandError::PowerLost)
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        let op = self.step()?;
        let cut = self.plan.cut_at(op);
        if cut.is_some() {
            self.powered = false;
        }
        let block = self.geometry().block_of(ppn);
        if self.is_factory_bad(block) {
            return Err(illegal("clear_flags", ppn, Law::BadBlock));
        }
        if self.look(ppn, Part::Spare)? == Look::Blank {
            return Err(NandError::Erased { ppn });
        }
        match cut {
            None => self.inner.clear_flags(ppn, flags),
            Some(CutOutcome::NotDone) => Err(NandError::PowerLost),
            Some(CutOutcome::Done) => self.inner.clear_flags(ppn, flags).and(Err(NandError::PowerLost)),
            Some(_) => {
                let some = flags.intersection(Flags::from_bits(self.plan.roll(op, 0) as u8));
                self.inner.clear_flags(ppn, some).and(Err(NandError::PowerLost))
            }
        }
    }

    fn corrected_bits(&self) -> u32 {
        debug_assert!(self.corrected <= self.plan.correctable_bits);
        self.corrected
    }

    fn correctable_bits(&self) -> u32 {
        self.plan.correctable_bits
    }
}
