//! One number for everything that an FTL did: each flash operation with what it wrote, and each
//! answer, in order.
//!
//! The number stands for behaviour. It says that two builds do the same, and not which one is
//! right.

use crate::rng::mix;
use nand::Spare;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A trail; clones write to the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail(Arc<AtomicU64>);

impl Trail {
    /// Takes in one more item.
    pub(crate) fn note(&self, item: u64) {
        self.0.store(mix(self.number(), item), Ordering::Relaxed);
    }

    /// Takes in an operation: what it is, and the page or block.
    pub(crate) fn operation(&self, what: char, place: u32) {
        self.note(u64::from(u32::from(what)) << 32 | u64::from(place));
    }

    /// Takes in bytes.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        // A word costs one multiplication, for metadata is most of what is written.
        let (words, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let last = (!rest.is_empty()).then_some(&last);
        let sum = words.iter().chain(last).fold(bytes.len() as u64, |sum, word| {
            (sum.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        });
        self.note(sum);
    }

    /// What everything so far comes to.
    pub(crate) fn number(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes in what is written beside the data.
    pub(crate) fn spare(&self, spare: &Spare) {
        let Spare { kind, tag, seq, erase_count, erased_at, aux, flags } = spare;
        self.note(*seq);
        self.note(u64::from(*tag) << 32 | u64::from(*erase_count));
        self.note(mix(u64::from(*erased_at), u64::from(*aux)) ^ (*kind as u64) << 8 ^ u64::from(flags.bits()));
    }
}
