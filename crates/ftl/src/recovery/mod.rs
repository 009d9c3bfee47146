//! Recovery strategies: how an FTL comes back after power loss.

pub mod checkpoint;
pub mod copies;
#[cfg(test)]
pub(crate) mod device;
mod last;
pub mod leaves;
pub mod mark;
pub(crate) mod order;
pub mod plausible;
pub mod saved;
pub mod scan;
pub mod steps;
pub mod survey;

use crate::contract::FtlError;
use crate::flash::{Flash, Purpose};
use nand::{Nand, NandError, Ppn, Spare};

/// Whether the data of a page can be read. Looks once: a page in doubt may read otherwise the next
/// time.
///
/// # Errors
/// Those of the device, except that the page cannot be read.
pub(crate) fn can_be_read<N: Nand>(flash: &mut Flash<N>, ppn: Ppn) -> Result<bool, FtlError> {
    is_read(flash.probe(Purpose::Recovery, ppn))
}

/// Whether a look at a page found what is in it.
pub(crate) fn is_read<T>(outcome: Result<T, NandError>) -> Result<bool, FtlError> {
    match outcome {
        Ok(_) => Ok(true),
        Err(NandError::Uncorrectable { .. } | NandError::Erased { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a sequence number beyond what a device can wear out with: it would leave the next ones
/// no room.
pub(crate) const fn check_seq(ppn: Ppn, seq: u64) -> Result<(), FtlError> {
    if seq < Spare::SEQ_END / 2 {
        return Ok(());
    }
    let reason = "its sequence number is beyond what a device can wear out with";
    Err(FtlError::Damaged { structure: "spare area", ppn, reason })
}
