//! Addresses. All are 32 bits wide: 2^32 - 1 pages, 16 TiB at 4 KiB a page.

use core::fmt;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// No address: the one value that is never a valid index.
            pub const NONE: Self = Self(u32::MAX);

            /// Whether this is an address rather than [`Self::NONE`].
            #[inline]
            #[must_use]
            pub const fn is_some(self) -> bool {
                self.0 != u32::MAX
            }

            /// The address as an array index.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.is_some() {
                    write!(f, concat!(stringify!($name), " {}"), self.0)
                } else {
                    f.write_str(concat!(stringify!($name), " none"))
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self, f)
            }
        }
    };
}

address! {
    /// Logical page number: the index of a page of the disk that the host sees.
    Lpn
}
address! {
    /// Physical page number: block × pages per block + page within the block.
    Ppn
}
address! {
    /// Physical (erase) block number.
    BlockId
}
