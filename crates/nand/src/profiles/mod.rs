//! Device profiles: the flash that papers measured, and flash of today, as data with sources.
//!
//! The rows are in `table.rs`. A profile says what a die is and how many there are; only the number
//! of blocks may be scaled. Every geometry gives software at least [`crate::Spare::BYTES`] of spare
//! area; where the source's spare area is smaller or shared with the ECC, the profile's `source`
//! says what was assumed.

mod table;

use crate::faults::Pairing;
use crate::geometry::{Capabilities, Dimensions, Geometry, GeometryError, Timing};
use alloc::borrow::Cow;

/// Limits of the path between the host and the dies, beyond the time a channel takes to transfer.
///
/// 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Limits {
    /// Successive dies of a channel that share one read queue, which serves one request at a time.
    pub read_queue_dies: u32,
    /// Write queues of a channel, and as many erase queues.
    pub write_queues_per_channel: u32,
    /// Requests that a queue holds.
    pub queue_depth: u32,
    /// The least that a read fetches; 0 for a whole page.
    pub read_unit_bytes: u32,
    /// Rate at which a channel transfers what is read, in bytes per microsecond, if it is not that
    /// of [`Timing::channel_bytes_per_us`].
    #[cfg_attr(feature = "serde", serde(default))]
    pub channel_read_bytes_per_us: u64,
    /// Rate of all reads together, in bytes per microsecond.
    pub host_read_bytes_per_us: u64,
    /// Rate of all writes together, in bytes per microsecond.
    pub host_write_bytes_per_us: u64,
}

impl Limits {
    /// Nothing but the dies and their channels limits.
    pub const NONE: Self = Self {
        read_queue_dies: 0,
        write_queues_per_channel: 0,
        queue_depth: 0,
        read_unit_bytes: 0,
        channel_read_bytes_per_us: 0,
        host_read_bytes_per_us: 0,
        host_write_bytes_per_us: 0,
    };
}

/// A kind of device.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Profile {
    /// What it is called on a command line.
    pub name: Cow<'static, str>,
    /// What it is, in a line.
    pub summary: Cow<'static, str>,
    /// Where the numbers are from, and which are assumed.
    pub source: Cow<'static, str>,
    /// The shape at the profile's own capacity.
    pub geometry: Dimensions,
    /// What it can do.
    pub capabilities: Capabilities,
    /// How long it takes.
    pub timing: Timing,
    /// What else limits it.
    pub limits: Limits,
    /// Which pages a torn program endangers.
    pub pairing: Pairing,
    /// Erases that a block endures.
    pub endurance_erases: u32,
    /// Logical pages for each physical page, unless the user says otherwise.
    pub default_logical_ratio: f64,
}

/// Why a profile could not be scaled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// The capacity does not reach one block in every plane.
    #[error("{capacity_bytes} B is less than one block in each of {planes} planes; give at least {least_bytes} B")]
    TooSmall {
        /// Capacity asked for, in bytes.
        capacity_bytes: u64,
        /// Planes of all dies.
        planes: u64,
        /// The least capacity that works, in bytes.
        least_bytes: u64,
    },
    /// The device would have more than 2^32 - 1 blocks.
    #[error("{capacity_bytes} B is {blocks} blocks, more than a 32-bit block address can name")]
    TooManyBlocks {
        /// Capacity asked for, in bytes.
        capacity_bytes: u64,
        /// What it comes to.
        blocks: u64,
    },
    /// The dimensions do not fit together.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

impl Profile {
    /// The device at the profile's own capacity.
    ///
    /// # Errors
    /// [`GeometryError`], for a profile that a user wrote; the built-in ones are tested.
    pub fn geometry(&self) -> Result<Geometry, GeometryError> {
        Geometry::new(self.geometry)
    }

    /// The device with as many blocks as fit a raw capacity, the same number in each plane;
    /// everything else stays.
    ///
    /// # Errors
    /// [`ScaleError`] if not even one block a plane fits, or more than addresses can name.
    pub fn scaled(&self, capacity_bytes: u64) -> Result<Geometry, ScaleError> {
        let d = self.geometry;
        Geometry::new(d)?;
        let planes = u64::from(d.channels) * u64::from(d.dies_per_channel) * u64::from(d.planes_per_die);
        let block_bytes = u64::from(d.pages_per_block) * u64::from(d.page_bytes);
        let blocks = capacity_bytes / block_bytes / planes * planes;
        if blocks == 0 {
            let least_bytes = planes.saturating_mul(block_bytes);
            return Err(ScaleError::TooSmall { capacity_bytes, planes, least_bytes });
        }
        let blocks = u32::try_from(blocks).map_err(|_| ScaleError::TooManyBlocks { capacity_bytes, blocks })?;
        debug_assert!(u64::from(blocks) * block_bytes <= capacity_bytes && u64::from(blocks).is_multiple_of(planes));
        Ok(Geometry::new(Dimensions { blocks, ..d })?)
    }
}

/// Every built-in profile.
#[must_use]
pub fn profiles() -> &'static [Profile] {
    &table::PROFILES
}

/// The built-in profile of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Profile> {
    profiles().iter().find(|profile| profile.name == name)
}
