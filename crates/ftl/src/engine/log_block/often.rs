//! Which pages are overwritten often: those that were overwritten before, not long ago.
//!
//! Two bits a page. Overwrites are counted in windows; a page counts as overwritten lately if it
//! was in this window or the one before.

use crate::mapping::bits::Bits;
use nand::Lpn;

/// The pages overwritten in this window and the one before.
#[derive(Debug)]
pub struct Often {
    now: Bits,
    before: Bits,
    /// Overwrites noted in this window.
    noted: u32,
    /// Overwrites of a window.
    window: u32,
}

impl Often {
    /// Nothing was overwritten yet of so many pages; windows of so many overwrites, at least 1.
    #[must_use]
    pub fn new(logical_pages: u32, window: u32) -> Self {
        Self { now: Bits::new(logical_pages), before: Bits::new(logical_pages), noted: 0, window: window.max(1) }
    }

    /// Whether a page was overwritten lately: one to two windows ago at most.
    #[inline]
    #[must_use]
    pub fn has(&self, lpn: Lpn) -> bool {
        self.now.has(lpn.0) || self.before.has(lpn.0)
    }

    /// A page is overwritten.
    #[inline]
    pub fn note(&mut self, lpn: Lpn) {
        debug_assert!(self.noted < self.window);
        self.now.set(lpn.0);
        self.noted += 1;
        if self.noted >= self.window {
            core::mem::swap(&mut self.now, &mut self.before);
            self.now.clear_all();
            self.noted = 0;
        }
    }

    /// Bytes of RAM held.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        self.now.bytes() + self.before.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_forgotten_after_two_windows_at_most() {
        let mut often = Often::new(100, 10);
        often.note(Lpn(99));
        assert!(often.has(Lpn(99)) && !often.has(Lpn(98)));
        (0..18).for_each(|lpn| often.note(Lpn(lpn)));
        assert!(often.has(Lpn(99)) && often.has(Lpn(0)));
        often.note(Lpn(50));
        assert!(!often.has(Lpn(99)) && !often.has(Lpn(8)) && often.has(Lpn(9)) && often.has(Lpn(50)));
    }
}
