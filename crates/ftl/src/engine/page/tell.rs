//! Where the mapping's deaths reach the validity store: the mapping is called, then the store is
//! told which pages died ([`crate::space::deaths`]).

use super::{Core, Mapping, Nand, PageFtl, Validity};
use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::space::deaths::{Death, STALE, Was};
use nand::{BlockId, Lpn, NandError, Ppn};

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// Changes the mapping: does what has to come before, then this, then what has to come after.
    /// The store knows of every death then.
    #[inline]
    pub(super) fn change<T>(
        &mut self,
        act: impl FnOnce(&mut M, &mut Core<N>) -> Result<T, FtlError>,
    ) -> Result<T, FtlError> {
        self.catch_up()?;
        let done = self.call(act)?;
        self.catch_up()?;
        Ok(done)
    }

    /// Lets entries leave the cache that have to.
    #[inline]
    pub(super) fn catch_up(&mut self) -> Result<(), FtlError> {
        if self.mapping.urgent() { self.maintain() } else { Ok(()) }
    }

    /// A step of what the mapping owes. Not in line: each change of the mapping has two calls.
    #[inline(never)]
    pub(super) fn maintain(&mut self) -> Result<(), FtlError> {
        while self.call(|mapping, core| mapping.maintain(core))? {}
        Ok(())
    }

    /// Calls the mapping, then tells the store which pages died; also if the call failed.
    #[inline]
    pub(super) fn call<T>(
        &mut self,
        act: impl FnOnce(&mut M, &mut Core<N>) -> Result<T, FtlError>,
    ) -> Result<T, FtlError> {
        match act(&mut self.mapping, &mut self.core) {
            Ok(done) => {
                self.tell()?;
                Ok(done)
            }
            Err(error) => Err(self.tell_after(error)),
        }
    }

    /// A call failed: tells the store which pages died before. The error is that of the call: what
    /// the store does not take is told before anything else.
    #[cold]
    fn tell_after(&mut self, error: FtlError) -> FtlError {
        if !matches!(error, FtlError::Nand(NandError::PowerLost)) {
            let _ = self.tell();
        }
        error
    }

    /// A page of host data died.
    pub(super) fn page_died(&mut self, ppn: Ppn) -> Result<(), FtlError> {
        self.core.page_died(ppn);
        self.tell()
    }

    /// What had to be done before an entry can lead to a page of host data failed: the page is
    /// dead. Else a collector would take it for the present copy.
    ///
    /// # Errors
    /// This error, or those of the device if the validity store wrote.
    #[cold]
    pub(super) fn give_up<T>(&mut self, lpn: Lpn, ppn: Ppn, error: FtlError) -> Result<T, FtlError> {
        debug_assert!(lpn.is_some() && ppn.is_some());
        self.core.deaths.note(ppn, Was::Abandoned, self.core.seq);
        if matches!(error, FtlError::Nand(NandError::PowerLost)) {
            self.given_up = Some(lpn);
        } else {
            self.tell()?;
        }
        Err(error)
    }

    /// Tells the validity store of blocks that were erased when they were opened, before a page in
    /// them can die, and of pages that died.
    ///
    /// # Errors
    /// Those of the device, if the validity store wrote. What the store did not take is told again.
    #[inline]
    pub(super) fn tell(&mut self) -> Result<(), FtlError> {
        if self.core.newly_erased.is_empty() {
            if self.core.deaths.is_empty() {
                return Ok(());
            }
            // The common case, in line: one death.
            if let Some(death) = self.core.deaths.first() {
                self.tell_of(death)?;
                self.core.deaths.pop();
                if self.core.deaths.first().is_none() && self.core.newly_erased.is_empty() {
                    self.core.deaths.clear();
                    return Ok(());
                }
            }
        }
        self.tell_all()
    }

    #[inline(never)]
    fn tell_all(&mut self) -> Result<(), FtlError> {
        self.tell_erased()?;
        while let Some(death) = self.core.deaths.first() {
            self.tell_of(death)?;
            debug_assert!(
                self.core.deaths.first().is_some_and(|first| first.ppn == death.ppn),
                "the store noted that a page died"
            );
            self.core.deaths.pop();
            if !self.core.newly_erased.is_empty() {
                // The store was flushed, which opened blocks.
                self.tell_erased()?;
            }
        }
        self.core.deaths.clear();
        Ok(())
    }

    fn tell_erased(&mut self) -> Result<(), FtlError> {
        while let Some(&(block, seq)) = self.core.newly_erased.first() {
            self.validity.erased(&mut self.core, block, seq)?;
            debug_assert!(self.core.newly_erased.first() == Some(&(block, seq)), "{block} is not told of first");
            self.core.newly_erased.remove(0);
        }
        Ok(())
    }

    /// Tells the store of a death, and counts it.
    #[inline]
    fn tell_of(&mut self, death: Death) -> Result<(), FtlError> {
        // The common case, in line.
        if death.was == Was::Host && !self.flags_dead {
            self.validity.invalidate(&mut self.core, death.ppn)?;
            self.core.space.page_died(death.ppn);
            return Ok(());
        }
        self.tell_of_any(death)
    }

    #[inline(never)]
    fn tell_of_any(&mut self, Death { ppn, was }: Death) -> Result<(), FtlError> {
        let reported = match was {
            Was::Host | Was::Abandoned | Was::Uncounted => true,
            Was::HostPerhapsTold if self.is_told(ppn)? => return Ok(()),
            Was::HostPerhapsTold => true,
            Was::HostPerhapsErased => {
                self.suspect(self.core.space.geometry().block_of(ppn));
                return Ok(());
            }
            Was::Erased => return Ok(()),
            Was::Translation | Was::Metadata => self.validity.tracks_metadata(),
        };
        if reported {
            self.validity.invalidate(&mut self.core, ppn)?;
        }
        if was == Was::Host && self.flags_dead {
            self.flag_dead(ppn)?;
        }
        if was == Was::Translation && self.validity.is_buffered() {
            self.pins.pin(self.core.space.geometry().block_of(ppn), self.validity.flushes());
        }
        // The store may have been flushed into the block of the page.
        let is_erased = self.core.deaths.first().is_some_and(|death| death.was == Was::Erased);
        if was != Was::Uncounted && !is_erased {
            self.core.space.page_died(ppn);
        }
        Ok(())
    }

    /// A block may hold a page that the store takes for live and the table does not: it is to be
    /// collected, before it can be collected as one that reads well. Allocates.
    #[cold]
    fn suspect(&mut self, block: BlockId) {
        if !self.fickle.contains(&block) {
            self.fickle.push(block);
        }
    }

    /// Flags a page of host data that died, once what supersedes it is on flash to its end. A page
    /// that cannot be flagged is dead without; so are those that die before a mount has settled
    /// which pages count.
    fn flag_dead(&mut self, ppn: Ppn) -> Result<(), FtlError> {
        if self.core.settling.is_some() {
            return Ok(());
        }
        match self.core.flash.clear_flags(Purpose::Validity, ppn, STALE) {
            Err(NandError::Uncorrectable { .. } | NandError::Erased { .. }) => Ok(()),
            outcome => Ok(outcome?),
        }
    }

    /// Whether the store knows already that a page died.
    #[cold]
    fn is_told(&mut self, ppn: Ppn) -> Result<bool, FtlError> {
        let geometry = *self.core.space.geometry();
        self.asked.clear();
        self.validity.query(&mut self.core, geometry.block_of(ppn), &mut self.asked)?;
        Ok(self.asked.contains(geometry.offset_of(ppn)))
    }
}
