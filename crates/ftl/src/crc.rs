//! CRC-32C (Castagnoli): the check value of what is written to flash as a whole and believed as a
//! whole.
//!
//! Any burst of up to 32 wrong bits is noticed, and so are up to three wrong bits of less than 256
//! MiB. The table takes 1 KiB of constants and no RAM; bit by bit, simulations of FTLs with log
//! blocks would take a third longer.

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            // Reflected: the lowest bit first.
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

static TABLE: [u32; 256] = table();

/// The check value of bytes that come one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Crc(u32);

impl Crc {
    /// Of no bytes yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(u32::MAX)
    }

    /// Takes the next bytes.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 >> 8 ^ TABLE[usize::from(self.0 as u8 ^ byte)];
        }
    }

    /// The check value of all bytes so far.
    #[must_use]
    pub const fn value(self) -> u32 {
        !self.0
    }
}

impl Default for Crc {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::Crc;

    #[test]
    fn it_is_the_published_one_however_the_bytes_come() {
        for at in 0..9 {
            let mut crc = Crc::new();
            crc.add(&b"123456789"[..at]);
            crc.add(&b"123456789"[at..]);
            assert_eq!(crc.value(), 0xE306_9283);
        }
    }
}
