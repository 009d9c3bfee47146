//! Going on when a page of metadata cannot be read: everything is rebuilt from what can be, as a
//! mount would do it.

use super::{Mapping, Nand, PageFtl, PageOptions, Validity};
use crate::config::Config;
use crate::contract::FtlError;
use nand::{NandError, PageKind};

/// How an FTL rebuilds itself from flash.
pub(super) struct Heal<F> {
    /// What it was made with.
    pub(super) config: Config,
    pub(super) options: PageOptions,
    /// Does it. Allocates, and takes as long as a mount that reads every spare area.
    pub(super) rebuild: fn(&mut F) -> Result<(), FtlError>,
}

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// Does something; if a page of metadata cannot be read, rebuilds what it belonged to and does
    /// it again.
    #[inline]
    pub(super) fn healing<T>(&mut self, mut act: impl FnMut(&mut Self) -> Result<T, FtlError>) -> Result<T, FtlError> {
        if self.power_lost {
            return Err(NandError::PowerLost.into());
        }
        match act(self) {
            Ok(done) => Ok(done),
            Err(error) => self.heal_and(error, act),
        }
    }

    /// Something failed: heals if that can help, and does it again.
    #[cold]
    #[inline(never)]
    fn heal_and<T>(
        &mut self,
        error: FtlError,
        mut act: impl FnMut(&mut Self) -> Result<T, FtlError>,
    ) -> Result<T, FtlError> {
        self.powered(|ftl| {
            if ftl.heal.is_none() {
                return Err(error);
            }
            ftl.heal_from(error)?;
            act(ftl)
        })
    }

    /// Does something, unless power is gone. What power cut short is the last thing that RAM
    /// remembers: a battery saves it, and a request that comes later must not take its place.
    #[inline]
    pub(super) fn powered<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, FtlError>) -> Result<T, FtlError> {
        if self.power_lost {
            return Err(NandError::PowerLost.into());
        }
        let outcome = act(self);
        if matches!(outcome, Err(FtlError::Nand(NandError::PowerLost))) {
            self.power_lost = true;
        }
        outcome
    }

    /// Rebuilds, if that can help; else the error is passed on.
    ///
    /// On a disk that can only be read nothing is rebuilt. If it comes to that while something is
    /// rebuilt, RAM holds half of the table, so that every read is an error until the device is
    /// mounted again.
    #[cold]
    fn heal_from(&mut self, error: FtlError) -> Result<(), FtlError> {
        match &self.heal {
            Some(heal) if self.is_metadata_loss(&error) && !self.core.is_starved() => {
                let outcome = (heal.rebuild)(self);
                self.half_rebuilt |= self.core.is_starved();
                outcome
            }
            _ => Err(error),
        }
    }

    /// Whether an error is about a page of metadata that does not read as it was written.
    pub(super) fn is_metadata_loss(&self, error: &FtlError) -> bool {
        match error {
            FtlError::Nand(NandError::Uncorrectable { ppn } | NandError::Erased { ppn })
            | FtlError::Damaged { ppn, .. } => {
                ppn.is_some() && self.core.space.kind(self.core.space.geometry().block_of(*ppn)) != PageKind::User
            }
            _ => false,
        }
    }
}
