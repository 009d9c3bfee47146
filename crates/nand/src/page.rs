//! A page of metadata in RAM, which a device may take over instead of copying it.

use alloc::sync::Arc;
use core::ops::Deref;

/// The bytes of a page of metadata that is read, changed and programmed elsewhere.
///
/// A device that keeps its pages in RAM exchanges the buffer for one that it no longer needs
/// ([`crate::Nand::program_meta_page`]). The bytes lie behind an `Arc` because such a device shares
/// them between copies of a page. A `MetaPage` itself shares them with nothing.
#[derive(Debug)]
pub struct MetaPage(Arc<[u8]>);

impl MetaPage {
    /// A page of `len` bytes that reads as erased.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self(core::iter::repeat_n(0xFF, len).collect())
    }

    /// The bytes, to change.
    #[inline]
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = Arc::get_mut(&mut self.0);
        debug_assert!(bytes.is_some(), "a page of metadata shares its bytes");
        bytes.unwrap_or_default()
    }

    /// Puts another buffer of the same length in place of this one, which is the answer.
    #[inline]
    pub(crate) fn exchange(&mut self, other: Arc<[u8]>) -> Arc<[u8]> {
        debug_assert!(self.0.len() == other.len(), "a page has another length than the one before");
        core::mem::replace(&mut self.0, other)
    }
}

impl Deref for MetaPage {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}
