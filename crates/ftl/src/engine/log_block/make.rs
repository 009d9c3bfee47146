//! Making an area: what a device must have, and the structures for it.

use super::area::{Area, AreaOptions, Room};
use super::blocks::{Blocks, RESERVE};
use super::checkpoint::{Checkpoints, Extent};
use crate::config::{Config, Maps};
use crate::contract::FtlError;
use crate::flash::{Flash, Purpose};
use crate::mapping::block::BlockTable;
use crate::mapping::fused::FusedPages;
use crate::mapping::log_pages::LogPages;
use crate::victim;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Nand, ProgramOrder};

/// What is known of a device that is large enough.
pub(super) struct Budget {
    /// The victim policy asked for, if it is to pick.
    victim: Option<&'static victim::Entry>,
    /// Good blocks that the disk needs.
    pub(super) needed: u32,
    /// Blocks that are bad.
    pub(super) bad_blocks: u32,
}

/// The error for a disk that needs more good blocks than there are.
#[cold]
fn too_small(geometry: &Geometry, config: &Config, options: AreaOptions, needed: u32, usable: u32) -> FtlError {
    let pages = geometry.pages_per_block();
    let data = config.logical_pages.div_ceil(pages);
    let work = needed - data;
    let remedy = match usable.saturating_sub(work) * pages {
        0 => format!("use a device of at least {} blocks", work + 1),
        most => format!("ask for 1 to {most} logical pages, or use a larger device"),
    };
    let reason = format!(
        "{} logical pages need {data} data blocks and {work} to work in, but {usable} of {} blocks are usable; {remedy}",
        config.logical_pages,
        geometry.blocks()
    );
    FtlError::Unsupported { ftl: options.name, reason }
}

/// What a checkpoint may have to hold; `None` if none is made.
pub(super) fn extent(geometry: Geometry, config: &Config, room: Room) -> Option<Extent> {
    let logical_blocks = config.logical_pages.div_ceil(geometry.pages_per_block());
    let extent = Extent { geometry, logical_blocks, logs: room.logs + RESERVE, fused: room.fused };
    (config.maps == Maps::InFlash).then_some(extent)
}

impl<N: Nand> Area<N> {
    /// Makes an empty area of a device: every block that is not bad is erased, whatever it seems to
    /// hold. `room` is told how many logical blocks and over-provisioned blocks there are.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`] if the device is too small for the logical pages asked for.
    pub fn format(
        mut flash: Flash<N>,
        config: &Config,
        options: AreaOptions,
        room: &dyn Fn(u32, u32) -> Room,
    ) -> Result<Self, FtlError> {
        let size = Self::check_size(&flash, config, options, room)?;
        let geometry = *flash.nand().geometry();
        let usable = geometry.blocks() - size.bad_blocks;
        if size.needed > usable {
            return Err(too_small(&geometry, config, options, size.needed, usable));
        }
        flash.erase_all()?;
        let mut area = Self::empty(flash, config, options, &size, room);
        area.complete_sets()?;
        Ok(area)
    }

    /// The victim policy asked for, and how many blocks are needed and bad, if the device is large
    /// enough with all its blocks good.
    pub(super) fn check_size(
        flash: &Flash<N>,
        config: &Config,
        options: AreaOptions,
        room: &dyn Fn(u32, u32) -> Room,
    ) -> Result<Budget, FtlError> {
        let refuse = |reason: String| FtlError::Unsupported { ftl: options.name, reason };
        if let Some(store) = config.validity {
            return Err(refuse(format!(
                "it keeps no page-validity store, so '{store}' means nothing to it; name none"
            )));
        }
        let victim = victim::find(config.victim)
            .ok_or_else(|| refuse(format!("there is no victim policy '{}'", config.victim)))?;
        if config.wear.is_some() {
            return Err(refuse("wear is levelled by page-mapped FTLs only; leave levelling off".into()));
        }
        if options.order == ProgramOrder::Free && flash.nand().capabilities().program_order == ProgramOrder::Sequential
        {
            return Err(refuse(
                "it programs the pages of a block in any order, but this device programs them in ascending order only; use a \
                 device whose program order is free (old SLC), or another FTL"
                    .into(),
            ));
        }
        let geometry = *flash.nand().geometry();
        let pages = geometry.pages_per_block();
        if pages >= u32::from(u16::MAX) {
            return Err(refuse(format!("blocks of {pages} pages exceed 65534")));
        }
        let bad_blocks = (0..geometry.blocks()).filter(|&block| flash.nand().is_bad(BlockId(block))).count() as u32;
        let data = config.logical_pages.div_ceil(pages);
        let room = room(data, geometry.blocks().saturating_sub(data + RESERVE));
        let for_checkpoints = extent(geometry, config, room).map_or(0, |extent| 2 * extent.blocks());
        let needed = data + RESERVE + options.least_logs + for_checkpoints;
        if config.logical_pages == 0 || needed > geometry.blocks() {
            return Err(too_small(&geometry, config, options, needed, geometry.blocks()));
        }
        Ok(Budget { victim: options.picks_victims.then_some(victim), needed, bad_blocks })
    }

    /// An area in which every block that is not bad is free.
    pub(super) fn empty(
        flash: Flash<N>,
        config: &Config,
        options: AreaOptions,
        size: &Budget,
        room: &dyn Fn(u32, u32) -> Room,
    ) -> Self {
        let geometry = *flash.nand().geometry();
        let (data, pages) = (config.logical_pages.div_ceil(geometry.pages_per_block()), geometry.pages_per_block());
        // For the device as it was made, or maps could not be found again after blocks went bad.
        let room = room(data, geometry.blocks().saturating_sub(data + RESERVE));
        let extent = extent(geometry, config, room);
        let for_checkpoints = extent.map_or(0, |extent| 2 * extent.blocks());
        let blocks = Blocks::new(flash.nand(), options.order, data, for_checkpoints, size.victim);
        Self {
            table: BlockTable::new(data, pages, config.maps == Maps::NonVolatile),
            // A mount may find more than may be open now, because blocks went bad.
            log: LogPages::new(geometry, room.logs + RESERVE),
            fused: FusedPages::new(data, pages, room.fused, geometry.pages()),
            logical_pages: config.logical_pages,
            in_flash: config.maps == Maps::InFlash,
            checkpoints: Checkpoints::new(extent),
            seq: 1,
            moving_for: Purpose::Gc,
            needed: size.needed,
            starved: false,
            in_doubt: Vec::new(),
            superseded: Vec::new(),
            blocks,
            flash,
        }
    }
}
