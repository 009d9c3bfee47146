//! The device of an explorer: one run of it yields the image that a power cut would leave at every
//! operation.
//!
//! Before an operation that its [`Tap`] wants is done, the device is copied (contents are shared
//! until changed), the operation is done to the copy with the outcome of a cut, and the copy is
//! kept for the explorer. The run itself goes on undisturbed, so a cut point costs only its
//! recovery.

use crate::rng::{Rng, mix};
use crate::trail::Trail;
use nand::{
    BlockId, Capabilities, Cut, CutOutcome, FaultPlan, Faulty, Flags, Geometry, Nand, NandError, PageKind, Pairing,
    Ppn, SimNand, Snapshot, Spare, Stamp,
};

/// At which operations of a run power is cut, and what the interrupted operation leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tap {
    pub(crate) at: At,
    pub(crate) outcomes: Outcomes,
    /// One read in so many is cut too, by chance; 0 for none.
    pub(crate) reads: u32,
}

/// At which operations, counted from 0 since the run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Never,
    This(u64),
    /// Every n-th that changes the device.
    Every(u64),
    /// Of those that change the device 0, 1, 3, 7, 15, …
    Powers,
    /// One in so many, by chance.
    Chance(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcomes {
    /// Every one that the operation can have.
    All,
    /// So many of them, by chance.
    Few(usize),
    /// One of them, by chance.
    Rolled,
    /// This one.
    This(CutOutcome),
}

impl Tap {
    pub(crate) const OFF: Self = Self { at: At::Never, outcomes: Outcomes::All, reads: 0 };

    /// A cut that is known.
    pub(crate) const fn at(cut: Cut) -> Self {
        Self { at: At::This(cut.at), outcomes: Outcomes::This(cut.outcome), reads: 0 }
    }

    /// The same cut, whichever operation it comes at.
    pub(crate) const fn anywhere(outcome: CutOutcome) -> Self {
        Self { at: At::Every(1), outcomes: Outcomes::This(outcome), reads: 0 }
    }

    fn is_of_reads(&self) -> bool {
        self.outcomes == Outcomes::This(CutOutcome::Reading)
    }

    /// Whether the `act`-th operation that changes the device is cut; with reads it is the `op`-th.
    fn wants(&self, op: u64, act: u64, seed: u64) -> bool {
        match self.at {
            _ if self.is_of_reads() => false,
            At::Never => false,
            At::This(at) => op == at,
            At::Every(n) => act.is_multiple_of(n),
            At::Powers => (act + 1).is_power_of_two(),
            At::Chance(times) => Rng::new(seed, op).one_in(times),
        }
    }

    /// Whether a read is cut, the `op`-th operation.
    fn wants_read(&self, op: u64, seed: u64) -> bool {
        match self.at {
            At::This(at) => op == at && self.is_of_reads(),
            _ if self.is_of_reads() => true,
            At::Never => false,
            _ => self.reads > 0 && Rng::new(seed, !op).one_in(self.reads),
        }
    }

    fn outcomes(&self, op: u64, seed: u64, possible: &'static [CutOutcome]) -> Vec<CutOutcome> {
        let rolled = |nth: u64| possible[(mix(seed, op.wrapping_add(nth << 48)) % possible.len() as u64) as usize];
        match self.outcomes {
            Outcomes::All => possible.to_vec(),
            Outcomes::Rolled => vec![rolled(0)],
            Outcomes::Few(count) => {
                let mut few: Vec<CutOutcome> = Vec::with_capacity(count);
                for outcome in (0..count as u64).map(rolled) {
                    if !few.contains(&outcome) {
                        few.push(outcome);
                    }
                }
                few
            }
            Outcomes::This(outcome) => vec![outcome],
        }
    }
}

/// What an interrupted operation can leave; of outcomes that would leave the same, one.
const fn possible(changes: Changes, pairing: Pairing, harsh: bool) -> &'static [CutOutcome] {
    use CutOutcome::{
        Altered, Done, Fading, Flaky, FlakyWhole, Garbage, HalfErased, HalfErasedFalsely, HalfErasedOddly,
        HalfErasedQuietly, NotDone, Paling, PartnerLost, Torn, TornData, TornOnce, Vanishing, Weak,
    };
    const PAGE: [CutOutcome; 19] = [
        NotDone,
        Done,
        Torn,
        TornData,
        TornOnce,
        Weak,
        Fading(1),
        Fading(2),
        Fading(3),
        Fading(4),
        Vanishing(2),
        Vanishing(4),
        Flaky,
        FlakyWhole,
        Garbage,
        Altered,
        Paling(2),
        Paling(4),
        PartnerLost,
    ];
    match changes {
        Changes::Page(_) if !harsh && pairing.bits_per_cell > 1 => {
            &[NotDone, Done, Torn, TornData, TornOnce, Weak, PartnerLost]
        }
        Changes::Page(_) if !harsh => &[NotDone, Done, Torn, TornData, TornOnce, Weak],
        Changes::Block(_) if !harsh => &[NotDone, Done, HalfErased],
        Changes::Page(_) if pairing.bits_per_cell > 1 => &PAGE,
        Changes::Page(_) => PAGE.split_at(PAGE.len() - 1).0,
        Changes::Block(_) => &[NotDone, Done, HalfErased, HalfErasedOddly, HalfErasedQuietly, HalfErasedFalsely],
        Changes::Mark => &[NotDone, Done],
        // None of the flags is set, all are, or some as the seed decides.
        Changes::Flags => &[NotDone, Done, Torn],
    }
}

/// What an operation changes.
#[derive(Clone, Copy)]
enum Changes {
    Page(Ppn),
    Block(BlockId),
    Mark,
    Flags,
}

/// What a cut took with it although it was on flash before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Casualties {
    /// Logical pages a copy of which is gone.
    pub(crate) pages: Vec<u32>,
    /// A page of metadata is gone: any logical page may suffer.
    pub(crate) metadata: bool,
    /// Logical pages a copy of which was in a block that is half erased now.
    pub(crate) fading: Vec<u32>,
}

/// A device as a power cut left it.
pub(crate) struct Image {
    pub(crate) flash: Faulty<SimNand>,
    pub(crate) cut: Cut,
    /// The number of the operation that was cut, counted from the device's first.
    pub(crate) op: u64,
    pub(crate) casualties: Casualties,
}

/// A simulated device with faults whose operations can be watched. See the module.
pub struct Tapped {
    flash: Faulty<SimNand>,
    tap: Tap,
    seed: u64,
    /// Operations of the device before this run.
    base: u64,
    /// Operations of this run that change the device.
    acts: u64,
    /// Operations, reads included, that this run may still do.
    left: u64,
    images: Vec<Image>,
    trail: Trail,
}

impl Tapped {
    /// A device that nobody watches, whose every run may do so many operations, reads included.
    pub(crate) fn new(flash: Faulty<SimNand>, limit: u64) -> Self {
        let trail = Trail::default();
        Self { flash, tap: Tap::OFF, seed: 0, base: 0, acts: 0, left: limit, images: Vec::new(), trail }
    }

    /// Operations are noted there.
    pub(crate) fn note_to(&mut self, trail: &Trail) {
        self.trail = trail.clone();
    }

    /// Begins a run: operations are counted from here.
    pub(crate) fn begin(&mut self, tap: Tap, seed: u64, limit: u64) {
        self.base = self.flash.ops();
        self.acts = 0;
        self.left = limit;
        (self.tap, self.seed) = (tap, seed);
    }

    /// Changes where the run is cut from here on.
    pub(crate) fn tap(&mut self, tap: Tap) {
        self.tap = tap;
    }

    /// The device with its faults.
    pub fn flash(&mut self) -> &mut Faulty<SimNand> {
        &mut self.flash
    }

    /// Operations of this run so far, reads among them if the device counts those.
    pub(crate) fn ops(&self) -> u64 {
        self.flash.ops() - self.base
    }

    /// Operations of this run so far that changed the device.
    pub(crate) const fn acts(&self) -> u64 {
        self.acts
    }

    /// Whether the run did as many operations as it may.
    pub(crate) const fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// The images made since the last call.
    pub(crate) fn take_images(&mut self) -> Vec<Image> {
        core::mem::take(&mut self.images)
    }

    fn spend(&mut self) -> Result<(), NandError> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 { Err(NandError::PowerLost) } else { Ok(()) }
    }

    /// A read is about to be done.
    fn sense(&mut self, what: char, ppn: Ppn) -> Result<(), NandError> {
        self.trail.operation(what, ppn.0);
        self.spend()?;
        let op = self.ops();
        if self.flash.plan().count_reads && self.flash.is_powered() && self.tap.wants_read(op, self.seed) {
            let cut = Cut { at: op, outcome: CutOutcome::Reading };
            let at = self.flash.ops();
            self.images.push(Image { flash: self.flash.snapshot(), cut, op: at, casualties: Casualties::default() });
        }
        Ok(())
    }

    fn act(
        &mut self,
        changes: Changes,
        act: impl Fn(&mut Faulty<SimNand>) -> Result<(), NandError>,
    ) -> Result<(), NandError> {
        self.spend()?;
        let (op, act_number) = (self.ops(), self.acts);
        self.acts += 1;
        if self.flash.is_powered() && self.tap.wants(op, act_number, self.seed) {
            let plan = self.flash.plan();
            let possible = possible(changes, plan.pairing, plan.odd_failures);
            for outcome in self.tap.outcomes(op, self.seed, possible) {
                let image = self.cut(Cut { at: op, outcome }, changes, &act);
                self.images.push(image);
            }
        }
        act(&mut self.flash)
    }

    fn cut(
        &mut self,
        cut: Cut,
        changes: Changes,
        act: &impl Fn(&mut Faulty<SimNand>) -> Result<(), NandError>,
    ) -> Image {
        let casualties = self.casualties(cut.outcome, changes);
        let mut flash = self.flash.snapshot();
        let at = flash.ops();
        flash.plan_mut().cuts = vec![Cut { at, outcome: cut.outcome }];
        // The answer is that power is gone, or that the FTL broke a law, which the run itself will
        // be told.
        let _ = act(&mut flash);
        flash.plan_mut().cuts.clear();
        flash.power_up();
        Image { flash, cut, op: at, casualties }
    }

    /// Whose copies a torn program takes with it, or half an erase leaves fading.
    fn casualties(&mut self, outcome: CutOutcome, changes: Changes) -> Casualties {
        let mut lost = Casualties::default();
        if let Changes::Block(block) = changes
            && !matches!(outcome, CutOutcome::NotDone | CutOutcome::Done)
        {
            let geometry = *self.flash.geometry();
            for ppn in (0..geometry.pages_per_block()).map(|offset| geometry.page_at(block, offset)) {
                let spare = self.flash.inner_mut().read_spare(ppn).ok().flatten();
                lost.fading.extend(spare.filter(|spare| spare.kind == PageKind::User).map(|spare| spare.tag));
            }
        }
        let Changes::Page(ppn) = changes else { return lost };
        if outcome != CutOutcome::PartnerLost {
            return lost;
        }
        let geometry = *self.flash.geometry();
        let block = geometry.block_of(ppn);
        for offset in self.flash.plan().pairing.partners(geometry.offset_of(ppn)) {
            match self.flash.inner_mut().read_spare(geometry.page_at(block, offset)) {
                Ok(Some(spare)) if spare.kind == PageKind::User => lost.pages.push(spare.tag),
                Ok(Some(_)) => lost.metadata = true,
                _ => {}
            }
        }
        lost
    }
}

/// A simulated device without contents, the plan's faults laid over it.
pub(crate) fn blank(geometry: Geometry, capabilities: Capabilities, plan: FaultPlan) -> Faulty<SimNand> {
    Faulty::new(SimNand::new(geometry, capabilities), plan)
}

impl Nand for Tapped {
    type Payload = Stamp;

    fn geometry(&self) -> &Geometry {
        self.flash.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.flash.capabilities()
    }

    fn read(&mut self, ppn: Ppn, out: &mut Stamp) -> Result<Spare, NandError> {
        self.sense('r', ppn)?;
        self.flash.read(ppn, out)
    }

    fn read_meta(&mut self, ppn: Ppn, out: &mut [u8]) -> Result<Spare, NandError> {
        self.sense('m', ppn)?;
        self.flash.read_meta(ppn, out)
    }

    fn read_spare(&mut self, ppn: Ppn) -> Result<Option<Spare>, NandError> {
        self.sense('s', ppn)?;
        self.flash.read_spare(ppn)
    }

    fn probe(&mut self, ppn: Ppn) -> Result<Spare, NandError> {
        self.sense('p', ppn)?;
        self.flash.probe(ppn)
    }

    fn program(&mut self, ppn: Ppn, data: &Stamp, spare: &Spare) -> Result<(), NandError> {
        self.trail.operation('P', ppn.0);
        self.trail.spare(spare);
        self.trail.operation('=', data.lpn.0 ^ u32::from(data.version) << 16);
        self.act(Changes::Page(ppn), |flash| flash.program(ppn, data, spare))
    }

    fn program_meta(&mut self, ppn: Ppn, data: &[u8], spare: &Spare) -> Result<(), NandError> {
        self.trail.operation('M', ppn.0);
        self.trail.spare(spare);
        self.trail.bytes(data);
        self.act(Changes::Page(ppn), |flash| flash.program_meta(ppn, data, spare))
    }

    fn copy(&mut self, from: Ppn, to: Ppn, spare: &Spare) -> Result<(), NandError> {
        self.trail.operation('C', to.0);
        self.trail.operation('c', from.0);
        self.trail.spare(spare);
        self.act(Changes::Page(to), |flash| flash.copy(from, to, spare))
    }

    fn erase(&mut self, block: BlockId) -> Result<(), NandError> {
        self.trail.operation('E', block.0);
        self.act(Changes::Block(block), |flash| flash.erase(block))
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.flash.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockId) -> Result<(), NandError> {
        self.trail.operation('B', block.0);
        self.act(Changes::Mark, |flash| flash.mark_bad(block))
    }

    fn clear_flags(&mut self, ppn: Ppn, flags: Flags) -> Result<(), NandError> {
        self.trail.operation('F', ppn.0 ^ u32::from(flags.bits()) << 24);
        self.act(Changes::Flags, |flash| flash.clear_flags(ppn, flags))
    }

    fn corrected_bits(&self) -> u32 {
        self.flash.corrected_bits()
    }

    fn correctable_bits(&self) -> u32 {
        self.flash.correctable_bits()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use nand::{Dimensions, Lpn};

    #[test]
    fn flags_are_cut_before_they_are_set_after_and_in_between() {
        let geometry = Geometry::new(Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks: 1,
            pages_per_block: 4,
            page_bytes: 512,
            spare_bytes: 32,
        });
        let capabilities = Capabilities { spare_reprograms: 1, ..Capabilities::MODERN };
        let plan = FaultPlan { seed: 3, ..FaultPlan::default() };
        let mut device = Tapped::new(blank(geometry.unwrap(), capabilities, plan), 100);
        let stamp = Stamp { lpn: Lpn(7), version: 1 };
        let spare =
            Spare { kind: PageKind::User, tag: 7, seq: 1, erase_count: 0, erased_at: 0, aux: 0, flags: Flags::NONE };
        device.program(Ppn(0), &stamp, &spare).unwrap();
        device.begin(Tap { at: At::Every(1), outcomes: Outcomes::All, reads: 0 }, 0, 100);
        let set = Flags::from_bits(0b1011_1101);
        device.clear_flags(Ppn(0), set).unwrap();
        let mut read = Stamp::UNWRITTEN;
        assert_eq!(device.read(Ppn(0), &mut read), Ok(Spare { flags: set, ..spare }));
        let images = device.take_images().into_iter().map(|mut image| {
            let found = image.flash.read(Ppn(0), &mut read).unwrap();
            assert_eq!((found, read), (Spare { flags: found.flags, ..spare }, stamp), "only flags change");
            assert_eq!(image.casualties, Casualties::default());
            (image.cut.outcome, found.flags)
        });
        let images: Vec<_> = images.collect();
        let outcomes: Vec<_> = images.iter().map(|image| image.0).collect();
        assert_eq!(outcomes, [CutOutcome::NotDone, CutOutcome::Done, CutOutcome::Torn]);
        let [before, after, between] = [images[0].1, images[1].1, images[2].1];
        assert_eq!((before, after), (Flags::NONE, set));
        assert!(set.contains(between) && !between.is_none() && between != set, "{between:?}");
    }
}
