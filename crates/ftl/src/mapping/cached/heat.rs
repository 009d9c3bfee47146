//! How often each translation page is used: the access counter (AC) of FTRM (section 4.2.1), kept
//! so that a mount can cache the entries of hot translation pages first.
//!
//! 1. A counter of a byte in RAM grows with each use of a translation page's entries by the host.
//!    From [`THRESHOLD`] uses on the page is hot.
//! 2. A translation page that is programmed while it is hot says so in its auxiliary field
//!    ([`HOT`]). That costs nothing.
//! 3. Bits of a programmed page can only be cleared, so no counter counts up in place. Between two
//!    programs of a translation page its flags say what has changed ([`Upkeep`]): six of them are a
//!    count in unary, one says that the page turned hot, one that it cooled down.
//! 4. What flash says is a hint. A count that is wrong costs reads, and no data.

use super::CachedMap;
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::space::age::HOT;
use crate::space::core::Core;
use alloc::vec::Vec;
use nand::{Flags, Law, Nand, NandError, Spare};

/// Uses from which on a translation page is hot.
pub const THRESHOLD: u8 = 4;

/// The most that a counter counts to: six bits, as in the paper.
const MOST: u8 = 63;

/// Flags that count uses in unary.
const STEPS: u8 = 0b0011_1111;

/// Flag of a page of which no entry is cached any more.
const COOLED: u8 = 0b0100_0000;

/// Flag of a page that turned hot.
const TURNED: u8 = 0b1000_0000;

/// How the count that flash has is kept up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Only when a translation page is programmed anyway: for devices that set no flags.
    Programs,
    /// Also with each use, until the flags are used up (FTRM's variant Base).
    Uses,
    /// Also when the last entry of a translation page leaves the cache (Victim).
    Leaving,
    /// Also once when a translation page turns hot, and once when its last entry leaves the cache,
    /// which takes it for cold (Write).
    Turning,
}

/// The counter of a translation page.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    uses: u8,
    /// What flash says: its flags, and [`TURNED`] also if it was programmed hot.
    on_flash: u8,
    /// How often its flags were set since it was programmed, at least; the device has a limit.
    times: u8,
}

impl Counter {
    /// The count that a mount would find.
    const fn kept(self) -> u8 {
        if self.on_flash & COOLED != 0 {
            return 0;
        }
        let hot = if self.on_flash & TURNED != 0 { THRESHOLD } else { 0 };
        hot + (self.on_flash & STEPS).count_ones() as u8
    }

    const fn is_hot(self) -> bool {
        self.uses >= THRESHOLD
    }
}

/// The counters of all translation pages.
#[derive(Debug)]
pub(super) struct Heat {
    upkeep: Upkeep,
    /// Empty if nothing is counted.
    counters: Vec<Counter>,
}

impl Heat {
    /// Counters for so many translation pages; none without `upkeep`.
    pub(super) fn new(upkeep: Option<Upkeep>, pages: u32) -> Self {
        let count = if upkeep.is_some() { pages as usize } else { 0 };
        Self { upkeep: upkeep.unwrap_or(Upkeep::Programs), counters: alloc::vec![Counter::default(); count] }
    }

    /// Whether uses are counted.
    pub(super) const fn is_kept(&self) -> bool {
        !self.counters.is_empty()
    }

    /// Whether a translation page is hot.
    pub(super) fn is_hot(&self, page: u32) -> bool {
        self.counters.get(page as usize).is_some_and(|counter| counter.is_hot())
    }

    /// How often a translation page was used, as far as is known.
    pub(super) fn uses(&self, page: u32) -> u8 {
        self.counters.get(page as usize).map_or(0, |counter| counter.uses)
    }

    /// A translation page was used; the flags to set for it.
    #[inline]
    fn used(&mut self, page: u32) -> Flags {
        let Some(counter) = self.counters.get_mut(page as usize) else { return Flags::NONE };
        counter.uses = (counter.uses + 1).min(MOST);
        let bits = match self.upkeep {
            Upkeep::Uses => (counter.on_flash & STEPS).wrapping_add(1) & STEPS & !counter.on_flash,
            Upkeep::Turning if counter.uses == THRESHOLD && counter.on_flash & (TURNED | COOLED) == 0 => TURNED,
            Upkeep::Turning | Upkeep::Leaving | Upkeep::Programs => 0,
        };
        Flags::from_bits(bits)
    }

    /// The last cached entry of a translation page left; the flags to set for it.
    fn left(&mut self, page: u32) -> Flags {
        let Some(counter) = self.counters.get_mut(page as usize) else { return Flags::NONE };
        let bits = match self.upkeep {
            Upkeep::Leaving => {
                let missing = counter.uses.saturating_sub(if counter.on_flash & TURNED != 0 { THRESHOLD } else { 0 });
                let steps = u32::from(missing).min(STEPS.count_ones());
                ((1_u16 << steps) - 1) as u8 & !counter.on_flash
            }
            Upkeep::Turning if counter.on_flash & (TURNED | COOLED) == TURNED => COOLED,
            Upkeep::Turning | Upkeep::Uses | Upkeep::Programs => 0,
        };
        if matches!(self.upkeep, Upkeep::Turning | Upkeep::Programs) {
            counter.uses = 0;
        }
        Flags::from_bits(bits)
    }

    /// Flags of a translation page were set.
    fn flagged(&mut self, page: u32, flags: Flags) {
        let counter = &mut self.counters[page as usize];
        counter.on_flash |= flags.bits();
        counter.times = counter.times.saturating_add(1);
    }

    /// Whether flags of a translation page may be set on a device that can so many times.
    fn may_flag(&self, page: u32, most: u8) -> bool {
        self.counters[page as usize].times < most
    }

    /// A translation page was programmed, and says whether it is hot.
    pub(super) fn programmed(&mut self, page: u32) {
        if let Some(counter) = self.counters.get_mut(page as usize) {
            (counter.on_flash, counter.times) = (if counter.is_hot() { TURNED } else { 0 }, 0);
        }
    }

    /// A mount found a translation page with this spare area. Power may have been cut once while
    /// flags were set of which none is seen.
    pub(super) fn found(&mut self, page: u32, spare: &Spare) {
        if let Some(counter) = self.counters.get_mut(page as usize) {
            counter.times = spare.flags.bits().count_ones() as u8 + 1;
            counter.on_flash = spare.flags.bits() | if spare.aux & HOT != 0 { TURNED } else { 0 };
            counter.uses = counter.kept();
        }
    }

    /// Bytes of RAM held.
    pub(super) fn ram_bytes(&self) -> u64 {
        (self.counters.capacity() * size_of::<Counter>()) as u64
    }
}

impl CachedMap {
    /// The host used an entry of a translation page.
    #[inline]
    pub(super) fn note_use<N: Nand>(&mut self, core: &mut Core<N>, page: u32) -> Result<(), FtlError> {
        if !self.heat.is_kept() {
            return Ok(());
        }
        let flags = self.heat.used(page);
        self.set_flags(core, page, flags)
    }

    /// Entries may have left the cache.
    #[inline]
    pub(super) fn note_leaving<N: Nand>(&mut self, core: &mut Core<N>) -> Result<(), FtlError> {
        match self.cmt.take_left() {
            Some(page) => {
                let flags = self.heat.left(page);
                self.set_flags(core, page, flags)
            }
            None => Ok(()),
        }
    }

    /// Sets flags of a translation page, if it is on flash. A page whose flags cannot be set keeps
    /// the count that it has.
    fn set_flags<N: Nand>(&mut self, core: &mut Core<N>, page: u32, flags: Flags) -> Result<(), FtlError> {
        let at = self.gmd[page as usize];
        let most = core.flash.nand().capabilities().spare_reprograms;
        let is_idle = flags.is_none() || !at.is_some() || !self.heat.may_flag(page, most);
        if is_idle || core.settling.is_some() || core.is_starved() {
            return Ok(());
        }
        match core.flash.clear_flags(Purpose::Translation, at, flags) {
            Ok(()) => self.heat.flagged(page, flags),
            Err(
                NandError::Uncorrectable { .. }
                | NandError::Erased { .. }
                | NandError::Illegal { law: Law::SpareReprogram, .. },
            ) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn use_times(heat: &mut Heat, times: u32) -> Vec<u8> {
        let flags = (0..times).map(|_| {
            let flags = heat.used(0);
            heat.flagged(0, flags);
            flags.bits()
        });
        flags.filter(|bits| *bits != 0).collect()
    }

    fn leave(heat: &mut Heat) -> u8 {
        let flags = heat.left(0);
        heat.flagged(0, flags);
        flags.bits()
    }

    #[test]
    fn every_use_clears_one_more_bit_until_none_is_left() {
        let mut heat = Heat::new(Some(Upkeep::Uses), 1);
        assert_eq!(use_times(&mut heat, 100), [1, 2, 4, 8, 16, 32]);
        assert_eq!((heat.counters[0].kept(), heat.uses(0)), (6, MOST));
        assert_eq!(leave(&mut heat), 0);
    }

    #[test]
    fn leaving_brings_the_count_up_to_date_at_once() {
        let mut heat = Heat::new(Some(Upkeep::Leaving), 1);
        assert_eq!(use_times(&mut heat, 2), []);
        assert_eq!(leave(&mut heat), 0b11);
        assert_eq!((use_times(&mut heat, 3), leave(&mut heat)), (vec![], 0b1_1100));
        assert_eq!(heat.counters[0].kept(), 5);
        heat.programmed(0);
        assert_eq!((heat.counters[0].kept(), leave(&mut heat)), (THRESHOLD, 1));
    }

    #[test]
    fn turning_hot_and_cooling_down_cost_a_flag_each() {
        let mut heat = Heat::new(Some(Upkeep::Turning), 1);
        assert_eq!(use_times(&mut heat, 3), []);
        assert_eq!(leave(&mut heat), 0, "what flash takes for cold needs no flag");
        assert_eq!(use_times(&mut heat, 60), [TURNED], "the count began anew");
        assert_eq!((heat.counters[0].kept(), leave(&mut heat), heat.counters[0].kept()), (THRESHOLD, COOLED, 0));
        assert_eq!((use_times(&mut heat, 10), leave(&mut heat)), (vec![], 0), "until it is programmed");
        use_times(&mut heat, 10);
        heat.programmed(0);
        assert_eq!(heat.counters[0].kept(), THRESHOLD);
    }

    #[test]
    fn without_flags_only_programs_keep_a_count() {
        let mut heat = Heat::new(Some(Upkeep::Programs), 1);
        assert_eq!((use_times(&mut heat, 10), heat.is_hot(0)), (vec![], true));
        heat.programmed(0);
        assert_eq!(heat.counters[0].kept(), THRESHOLD);
        assert_eq!((leave(&mut heat), heat.is_hot(0), heat.counters[0].kept()), (0, false, THRESHOLD));
        let mut none = Heat::new(None, 1);
        assert!(!none.is_kept() && none.used(0).is_none() && none.left(0).is_none() && !none.is_hot(0));
    }
}
