//! Recovery strategies: how an FTL comes back after power loss.

pub mod checkpoint;
pub mod copies;
#[cfg(test)]
mod device;
mod last;
pub mod leaves;
pub mod mark;
pub mod plausible;
pub mod saved;
pub mod scan;
pub mod survey;

use crate::contract::FtlError;
use nand::{Ppn, Spare};

/// Refuses a sequence number beyond what a device can wear out with: it would leave the next ones
/// no room.
pub(crate) const fn check_seq(ppn: Ppn, seq: u64) -> Result<(), FtlError> {
    if seq < Spare::SEQ_END / 2 {
        return Ok(());
    }
    let reason = "its sequence number is beyond what a device can wear out with";
    Err(FtlError::Damaged { structure: "spare area", ppn, reason })
}
