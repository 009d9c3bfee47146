//! What a battery saves: parts put bytes in, and take them out again in the same order.

use crate::contract::FtlError;

/// Takes bytes on their way to flash.
pub trait Sink {
    /// Takes these.
    ///
    /// # Errors
    /// Those of the device.
    fn put(&mut self, bytes: &[u8]) -> Result<(), FtlError>;

    /// Takes a number.
    ///
    /// # Errors
    /// Those of the device.
    fn put_u32(&mut self, number: u32) -> Result<(), FtlError> {
        self.put(&number.to_le_bytes())
    }
}

/// Bytes that were saved, handed back from the first to the last.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a>(pub &'a [u8]);

impl<'a> Source<'a> {
    /// The next bytes; `None` if there are not so many.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    /// The next number.
    pub fn take_u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}
