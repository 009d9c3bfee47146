//! Flags of a programmed page: the only bits of it that change before its block is erased.
//!
//! All bits of the flags are one when the page is programmed. Setting a flag clears its bits, which
//! NAND can do without an erase as often as [`crate::Capabilities::spare_reprograms`] says. No
//! check value covers the flags, because bits of a check value would have to rise. Each flag is
//! kept [`Flags::COPIES`] times instead, and the majority decides: any single flipped bit of a flag
//! is corrected, whichever way it flips.

/// A set of flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// No flag: what a page has when it is programmed.
    pub const NONE: Self = Self(0);
    /// Every flag.
    pub const ALL: Self = Self(u8::MAX);
    /// Flags of a page.
    pub const COUNT: u32 = u8::BITS;
    /// How often each flag is kept.
    pub const COPIES: usize = 3;

    /// The flags with these bits, one for each flag that is set.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// One bit for each flag that is set. The bytes on flash are the complement.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether no flag is set.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether every flag of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// The flags that are set in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The flags that are set in both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The flags that are set here and not in `other`.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The byte form of one copy.
    pub(crate) const fn encode(self) -> u8 {
        !self.0
    }

    /// The flags that most of the copies have.
    pub(crate) const fn decode(copies: [u8; Self::COPIES]) -> Self {
        let [a, b, c] = copies;
        Self(!(a & b | a & c | b & c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_flags() {
        let (low, high) = (Flags::from_bits(0x0F), Flags::from_bits(0xF0));
        assert_eq!(low.union(high), Flags::ALL);
        assert_eq!(low.intersection(Flags::from_bits(3)), Flags::from_bits(3));
        assert_eq!(Flags::ALL.difference(high), low);
        assert!(low.contains(Flags::NONE) && low.contains(low) && Flags::ALL.contains(high));
        assert!(!low.contains(high) && !low.contains(Flags::ALL) && !Flags::NONE.contains(low));
        assert!(Flags::NONE.is_none() && Flags::default().is_none() && !low.is_none());
        assert_eq!(Flags::ALL.bits().count_ones(), Flags::COUNT);
    }

    #[test]
    fn two_of_three_copies_decide() {
        for bits in 0..=u8::MAX {
            let flags = Flags::from_bits(bits);
            let copy = flags.encode();
            assert_eq!(Flags::decode([copy; 3]), flags);
            for other in [0, u8::MAX, !copy, bits.rotate_left(3)] {
                for copies in [[other, copy, copy], [copy, other, copy], [copy, copy, other]] {
                    assert_eq!(Flags::decode(copies), flags);
                }
            }
        }
    }
}
