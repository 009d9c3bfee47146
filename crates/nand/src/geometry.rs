//! The shape of a device, what it is able to do, and how long it takes.

use crate::addr::{BlockId, Ppn};
use crate::faults::Pairing;

/// The order in which the pages of one block may be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum ProgramOrder {
    /// Ascending; pages may be skipped, never returned to (every NAND since MLC).
    Sequential,
    /// Any order, each page once (old SLC).
    Free,
}

/// What a device can do beyond read, program and erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Capabilities {
    /// The order in which pages of a block may be programmed.
    pub program_order: ProgramOrder,
    /// How often flags of a programmed page may be set: programs of its spare area that only clear
    /// bits.
    pub spare_reprograms: u8,
    /// Pages at the same offset in the planes of a die can be programmed together, and their blocks
    /// erased.
    pub multi_plane: bool,
    /// A page can be moved inside a plane without crossing the bus.
    pub copy_back: bool,
}

impl Capabilities {
    /// What every NAND made today can do: sequential programming and nothing more.
    pub const MODERN: Self =
        Self { program_order: ProgramOrder::Sequential, spare_reprograms: 0, multi_plane: false, copy_back: false };
}

/// Durations of the device's operations in nanoseconds. Data for a simulator; no device waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Timing {
    /// Array to page register.
    pub read_ns: u64,
    /// Array to register when only the spare area is wanted.
    pub spare_read_ns: u64,
    /// Page register to array.
    pub program_ns: u64,
    /// One block.
    pub erase_ns: u64,
    /// Channel transfer rate in bytes per microsecond; 0 means transfers take no time.
    pub channel_bytes_per_us: u64,
    /// While a die programs a page, the next page to be programmed there may be transferred to it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub cache_programs: bool,
    /// While a page that was read is transferred, its die may read the next.
    #[cfg_attr(feature = "serde", serde(default))]
    pub cache_reads: bool,
    /// [`Timing::read_ns`] by page type, of which it is the mean.
    #[cfg_attr(feature = "serde", serde(default))]
    pub read_by_type_ns: ByType,
    /// [`Timing::program_ns`] by page type, of which it is the mean.
    #[cfg_attr(feature = "serde", serde(default))]
    pub program_by_type_ns: ByType,
}

/// Durations of the pages of a word line, the page that is programmed first before the others (LSB,
/// CSB, MSB). None if all pages take the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "alloc::vec::Vec<u64>", into = "alloc::vec::Vec<u64>")
)]
pub struct ByType {
    ns: [u64; Self::MOST],
    types: u8,
}

impl ByType {
    /// The most page types: cells of eight bits.
    pub const MOST: usize = 8;

    /// All pages take the same.
    pub const NONE: Self = Self { ns: [0; Self::MOST], types: 0 };

    /// These durations, nanoseconds.
    ///
    /// # Errors
    /// [`TypesError::TooMany`].
    pub fn new(ns: &[u64]) -> Result<Self, TypesError> {
        let mut all = [0; Self::MOST];
        let types = ns.len();
        all.get_mut(..types).ok_or(TypesError::TooMany { types })?.copy_from_slice(ns);
        Ok(Self { ns: all, types: types as u8 })
    }

    /// The durations, nanoseconds.
    #[must_use]
    pub fn as_slice(&self) -> &[u64] {
        debug_assert!(usize::from(self.types) <= Self::MOST, "more page types than a cell can have");
        &self.ns[..usize::from(self.types)]
    }

    /// The duration of a page at an offset in its block, if `mean` is that of an average page.
    #[must_use]
    #[inline]
    pub fn at(&self, pairing: Pairing, offset: u32, mean: u64) -> u64 {
        if self.types == 0 {
            return mean;
        }
        debug_assert!(u32::from(self.types) == pairing.bits_per_cell, "durations of other cells");
        self.as_slice().get(pairing.page_type(offset) as usize).copied().unwrap_or(mean)
    }

    fn check(&self, field: &'static str, pairing: Pairing, mean: u64) -> Result<(), TypesError> {
        let (types, bits) = (u32::from(self.types), pairing.bits_per_cell);
        if types == 0 {
            return Ok(());
        }
        if types != bits {
            return Err(TypesError::NotOfCells { field, types, bits });
        }
        let sum: u128 = self.as_slice().iter().map(|ns| u128::from(*ns)).sum();
        let of_types = (sum / u128::from(types)) as u64;
        if of_types == mean { Ok(()) } else { Err(TypesError::OtherMean { field, mean, of_types }) }
    }
}

#[cfg(feature = "serde")]
impl TryFrom<alloc::vec::Vec<u64>> for ByType {
    type Error = TypesError;

    fn try_from(ns: alloc::vec::Vec<u64>) -> Result<Self, TypesError> {
        Self::new(&ns)
    }
}

#[cfg(feature = "serde")]
impl From<ByType> for alloc::vec::Vec<u64> {
    fn from(by_type: ByType) -> Self {
        by_type.as_slice().to_vec()
    }
}

/// Why durations by page type were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypesError {
    /// No cell has so many bits.
    #[error("{types} page types are more than the {} that a cell can have", ByType::MOST)]
    TooMany {
        /// Durations given.
        types: usize,
    },
    /// A word line has another number of pages.
    #[error(
        "{field} has {types} durations, and cells of {bits} bits (bits_per_cell) have {bits} page types; give one for \
         each, or an empty list"
    )]
    NotOfCells {
        /// The field of [`Timing`].
        field: &'static str,
        /// Durations given.
        types: u32,
        /// [`Pairing::bits_per_cell`].
        bits: u32,
    },
    /// The duration of an average page is another.
    #[error(
        "the mean of {field} is {of_types} ns, and the duration of an average page is {mean} ns; they must be the same, \
         because what counts operations takes the average"
    )]
    OtherMean {
        /// The field of [`Timing`].
        field: &'static str,
        /// The duration of an average page, nanoseconds.
        mean: u64,
        /// The mean of those by page type, nanoseconds, rounded down.
        of_types: u64,
    },
}

impl Timing {
    /// Nothing takes time.
    pub const NONE: Self = Self {
        read_ns: 0,
        spare_read_ns: 0,
        program_ns: 0,
        erase_ns: 0,
        channel_bytes_per_us: 0,
        cache_programs: false,
        cache_reads: false,
        read_by_type_ns: ByType::NONE,
        program_by_type_ns: ByType::NONE,
    };

    /// Refuses durations by page type that do not fit the cells, or not the average page.
    ///
    /// # Errors
    /// [`TypesError::NotOfCells`] and [`TypesError::OtherMean`].
    pub fn check(&self, pairing: Pairing) -> Result<(), TypesError> {
        self.read_by_type_ns.check("read_by_type_ns", pairing, self.read_ns)?;
        self.program_by_type_ns.check("program_by_type_ns", pairing, self.program_ns)
    }
}

/// The shape of a device. Construct with [`Geometry::new`], which refuses what does not fit.
///
/// Blocks are numbered so that neighbours lie on different dies: block `b` is on die
/// `b % dies()`, and dies are numbered channel first (die `d` is on channel `d % channels`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    channels: u32,
    dies_per_channel: u32,
    planes_per_die: u32,
    blocks: u32,
    pages_per_block: u32,
    page_bytes: u32,
    spare_bytes: u32,
    /// log2(pages_per_block), or `NOT_A_POWER`: a shift is several times cheaper than a division.
    page_shift: u32,
}

const NOT_A_POWER: u32 = u32::MAX;

/// Why a geometry was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// A dimension is zero.
    #[error("{what} is 0; give at least 1")]
    Zero {
        /// The dimension.
        what: &'static str,
    },
    /// The device has more pages than a 32-bit page address can name.
    #[error(
        "{blocks} blocks of {pages_per_block} pages are {pages} pages, more than the 4294967294 that a 32-bit page \
         address can name; use larger pages or fewer blocks"
    )]
    TooManyPages {
        /// Blocks asked for.
        blocks: u32,
        /// Pages in each.
        pages_per_block: u32,
        /// Their product.
        pages: u64,
    },
    /// Blocks do not divide evenly over the dies and planes.
    #[error("{blocks} blocks do not divide evenly over {units} planes; use a multiple")]
    Uneven {
        /// Blocks asked for.
        blocks: u32,
        /// Channels × dies × planes.
        units: u64,
    },
    /// The page is too small or not a whole number of 512-byte sectors.
    #[error("a page of {page_bytes} B is not a multiple of 512 B up to 1 MiB")]
    PageBytes {
        /// Page size asked for, bytes.
        page_bytes: u32,
    },
    /// The spare area cannot hold [`crate::Spare::BYTES`].
    #[error("a spare area of {spare_bytes} B is too small; the format needs {needed} B beside the device's own ECC")]
    SpareBytes {
        /// Spare size asked for, bytes.
        spare_bytes: u32,
        /// What the format needs, bytes.
        needed: u32,
    },
}

/// The dimensions [`Geometry::new`] takes, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Dimensions {
    /// Buses.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes in each die.
    pub planes_per_die: u32,
    /// Blocks in the whole device.
    pub blocks: u32,
    /// Pages in each block.
    pub pages_per_block: u32,
    /// Bytes in each page, spare area excluded.
    pub page_bytes: u32,
    /// Bytes of spare area usable by software in each page.
    pub spare_bytes: u32,
}

impl Geometry {
    /// Checks the dimensions.
    ///
    /// # Errors
    /// [`GeometryError`] names the dimension that does not fit and by how much.
    pub fn new(d: Dimensions) -> Result<Self, GeometryError> {
        for (what, value) in [
            ("channels", d.channels),
            ("dies per channel", d.dies_per_channel),
            ("planes per die", d.planes_per_die),
            ("blocks", d.blocks),
            ("pages per block", d.pages_per_block),
        ] {
            if value == 0 {
                return Err(GeometryError::Zero { what });
            }
        }
        let pages = u64::from(d.blocks) * u64::from(d.pages_per_block);
        if pages >= u64::from(u32::MAX) {
            return Err(GeometryError::TooManyPages { blocks: d.blocks, pages_per_block: d.pages_per_block, pages });
        }
        // Of more than 2^64 planes no number of blocks is a multiple, as of 2^64 - 1.
        let units = (u64::from(d.channels) * u64::from(d.dies_per_channel)).saturating_mul(d.planes_per_die.into());
        if !u64::from(d.blocks).is_multiple_of(units) {
            return Err(GeometryError::Uneven { blocks: d.blocks, units });
        }
        if d.page_bytes == 0 || !d.page_bytes.is_multiple_of(512) || d.page_bytes > 1 << 20 {
            return Err(GeometryError::PageBytes { page_bytes: d.page_bytes });
        }
        if d.spare_bytes < crate::Spare::BYTES as u32 {
            return Err(GeometryError::SpareBytes { spare_bytes: d.spare_bytes, needed: crate::Spare::BYTES as u32 });
        }
        let page_shift =
            if d.pages_per_block.is_power_of_two() { d.pages_per_block.trailing_zeros() } else { NOT_A_POWER };
        debug_assert!(page_shift == NOT_A_POWER || 1 << page_shift == d.pages_per_block);
        Ok(Self {
            channels: d.channels,
            dies_per_channel: d.dies_per_channel,
            planes_per_die: d.planes_per_die,
            blocks: d.blocks,
            pages_per_block: d.pages_per_block,
            page_bytes: d.page_bytes,
            spare_bytes: d.spare_bytes,
            page_shift,
        })
    }

    /// The dimensions this was made from.
    #[must_use]
    pub const fn dimensions(&self) -> Dimensions {
        Dimensions {
            channels: self.channels,
            dies_per_channel: self.dies_per_channel,
            planes_per_die: self.planes_per_die,
            blocks: self.blocks,
            pages_per_block: self.pages_per_block,
            page_bytes: self.page_bytes,
            spare_bytes: self.spare_bytes,
        }
    }

    /// Blocks in the device.
    #[inline]
    #[must_use]
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Pages in each block.
    #[inline]
    #[must_use]
    pub const fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Pages in the device.
    #[inline]
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.blocks * self.pages_per_block
    }

    /// Bytes in a page, spare area excluded.
    #[inline]
    #[must_use]
    pub const fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Bytes of spare area usable by software in each page.
    #[inline]
    #[must_use]
    pub const fn spare_bytes(&self) -> u32 {
        self.spare_bytes
    }

    /// Raw capacity in bytes, spare areas excluded.
    #[must_use]
    pub const fn raw_bytes(&self) -> u64 {
        self.pages() as u64 * self.page_bytes as u64
    }

    /// Buses.
    #[must_use]
    pub const fn channels(&self) -> u32 {
        self.channels
    }

    /// Dies over all channels.
    #[inline]
    #[must_use]
    pub const fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Planes in each die.
    #[must_use]
    pub const fn planes_per_die(&self) -> u32 {
        self.planes_per_die
    }

    /// The die that holds a block.
    #[inline]
    #[must_use]
    pub const fn die_of(&self, block: BlockId) -> u32 {
        debug_assert!(block.0 < self.blocks);
        block.0 % self.dies()
    }

    /// The channel that serves a die.
    #[inline]
    #[must_use]
    pub const fn channel_of(&self, die: u32) -> u32 {
        debug_assert!(die < self.dies());
        die % self.channels
    }

    /// The plane of its die that holds a block.
    #[inline]
    #[must_use]
    pub const fn plane_of(&self, block: BlockId) -> u32 {
        debug_assert!(block.0 < self.blocks);
        (block.0 / self.dies()) % self.planes_per_die
    }

    /// The block that holds a page.
    #[inline]
    #[must_use]
    pub const fn block_of(&self, ppn: Ppn) -> BlockId {
        if self.page_shift == NOT_A_POWER {
            BlockId(ppn.0 / self.pages_per_block)
        } else {
            BlockId(ppn.0 >> self.page_shift)
        }
    }

    /// A page's index within its block.
    #[inline]
    #[must_use]
    pub const fn offset_of(&self, ppn: Ppn) -> u32 {
        if self.page_shift == NOT_A_POWER { ppn.0 % self.pages_per_block } else { ppn.0 & ((1 << self.page_shift) - 1) }
    }

    /// The page at an offset in a block.
    #[inline]
    #[must_use]
    pub const fn page_at(&self, block: BlockId, offset: u32) -> Ppn {
        debug_assert!(block.0 < self.blocks && offset < self.pages_per_block);
        Ppn(block.0 * self.pages_per_block + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Dimensions = Dimensions {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks: 16,
        pages_per_block: 12,
        page_bytes: 512,
        spare_bytes: 32,
    };

    #[test]
    fn addresses_round_trip_with_odd_and_even_block_sizes() {
        for pages_per_block in [1, 2, 7, 12, 64, 129] {
            let g = Geometry::new(Dimensions { pages_per_block, ..SMALL }).unwrap();
            for p in 0..g.pages() {
                let (b, o) = (g.block_of(Ppn(p)), g.offset_of(Ppn(p)));
                assert!(b.0 < g.blocks() && o < pages_per_block);
                assert_eq!(g.page_at(b, o), Ppn(p));
            }
        }
    }

    #[test]
    fn page_addresses_end_one_short_of_none() {
        let fits = Dimensions { channels: 1, dies_per_channel: 1, blocks: u32::MAX - 1, pages_per_block: 1, ..SMALL };
        assert!(Geometry::new(fits).is_ok());
        let beyond = Dimensions { blocks: u32::MAX, ..fits };
        assert!(matches!(Geometry::new(beyond), Err(GeometryError::TooManyPages { .. })));
    }

    #[test]
    fn every_dimension_is_checked() {
        for bad in [
            Dimensions { channels: 0, ..SMALL },
            Dimensions { pages_per_block: 0, ..SMALL },
            Dimensions { blocks: 17, ..SMALL },
            Dimensions { channels: u32::MAX, dies_per_channel: u32::MAX, planes_per_die: u32::MAX, ..SMALL },
            Dimensions { page_bytes: 500, ..SMALL },
            Dimensions { page_bytes: 0, ..SMALL },
            Dimensions { spare_bytes: crate::Spare::BYTES as u32 - 1, ..SMALL },
        ] {
            assert!(Geometry::new(bad).is_err(), "{bad:?}");
        }
    }
}
