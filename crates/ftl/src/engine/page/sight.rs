//! What placement is told beside a write: the past of the page, from a mapping that keeps it, and
//! the future, from a simulation that knows it.

use super::{Lpn, Mapping, Nand, PageFtl, Validity};
use crate::contract::FtlError;
use crate::placement::{Future, Past};

/// Steps of background work of placement in one unit of idle time.
pub(super) const IDLE_STEPS: u32 = 64;

impl<N: Nand, M: Mapping, V: Validity> PageFtl<N, M, V> {
    /// What the mapping keeps of a page's past, if placement asks for it. If a lookup programs
    /// pages, space is made for them first.
    #[inline]
    pub(super) fn past(&mut self, lpn: Lpn) -> Result<Option<Past>, FtlError> {
        if !self.placing.asks_for_past() {
            return Ok(None);
        }
        self.prepare()?;
        self.change(|mapping, core| mapping.past(core, lpn))
    }

    /// Refuses to write if placement waits to be told the future.
    #[inline]
    pub(super) fn check_sight(&self) -> Result<(), FtlError> {
        if self.placing.is_blind() { Err(FtlError::NoFuture) } else { Ok(()) }
    }

    /// Tells placement what the host will write.
    pub(super) fn tell_future(&mut self, future: Future) {
        self.placing.foresee(future);
    }
}
