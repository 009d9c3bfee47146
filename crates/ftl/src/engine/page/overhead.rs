//! Blocks that a disk takes beside those of its data, and whether a device has them.

use super::trims::TrimBlocks;
use super::{Config, Mapping, PageOptions, Validity, battery};
use crate::victim::Banks;
use alloc::format;
use alloc::string::String;
use nand::Geometry;

/// Spare blocks a lane of metadata: a lane more takes four to six. Pages of metadata are a third of
/// all that DFTL and GeckoFTL program, and dies without a lane get none of them.
const SPARE_A_LANE: u32 = 16;

/// Blocks that may go bad in mounts by scan that are cut short, before one is gained.
const BAD_IN_MOUNTS: u32 = 2;

/// Blocks that an engine needs beside those that host data fills.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overhead {
    pub(super) reserve: u32,
    /// Blocks being filled, and what the staggered first blocks of the lanes leave out.
    pub(super) active: u32,
    metadata: u32,
    /// Of the reserve, blocks for what a battery saves.
    pub(super) saves: u32,
    /// Blocks that one collection without gain may take for good.
    pub(super) rest: u32,
    pub(super) trims: TrimBlocks,
}

/// The streams and lanes of an engine, and what it needs for them.
pub(super) struct Shares {
    pub(super) overhead: Overhead,
    pub(super) host_streams: u8,
    pub(super) lanes: u32,
    pub(super) metadata_lanes: u32,
}

impl Shares {
    /// For a placement with so many streams.
    pub(super) fn of<M: Mapping, V: Validity>(
        geometry: &Geometry,
        config: &Config,
        options: PageOptions,
        streams: u8,
        mapping: &M,
        validity: &V,
    ) -> Self {
        let lanes = Banks::fit(geometry, config.lanes);
        let has_battery = options.battery && config.battery;
        let saved = if has_battery { battery::saved_pages(geometry, mapping, validity) } else { 0 };
        let host_streams = streams + u8::from(config.wear.is_some());
        let overhead_with = |metadata_lanes| {
            Overhead::of(geometry, u32::from(host_streams), (lanes, metadata_lanes), saved, mapping, validity)
        };
        let metadata_lanes = overhead_with(1).metadata_lanes(geometry, config.logical_pages, lanes);
        let mut overhead = overhead_with(metadata_lanes);
        if config.wear.is_some() {
            // Moving data at rest gains no block: its blocks must be there beside all else.
            overhead.reserve += overhead.rest;
        }
        Self { overhead, host_streams, lanes, metadata_lanes }
    }
}

impl Overhead {
    fn of<M: Mapping, V: Validity>(
        g: &Geometry,
        host_streams: u32,
        (lanes, metadata_lanes): (u32, u32),
        saved: u32,
        mapping: &M,
        validity: &V,
    ) -> Self {
        let pages = g.pages_per_block();
        let footprint = mapping.footprint_pages() + validity.footprint_pages();
        // Pages that one block could take may begin one in each lane.
        let translation = match mapping.footprint_pages() {
            0 => 0,
            _ => (pages + mapping.reserve_pages()).div_ceil(pages) + metadata_lanes + 2,
        };
        let log = match validity.footprint_pages() {
            0 => 0,
            _ => (2 * validity.reserve_pages()).div_ceil(pages) + metadata_lanes,
        };
        // Two runs of saved pages, old and new, each begins in partly filled blocks.
        let saves = if saved > 0 { 2 * (saved.div_ceil(pages) + metadata_lanes) } else { 0 };
        // Mounts by scan that are cut short leave at most two blocks with pages in them.
        let attempts = if mapping.footprint_pages() == 0 { 2 } else { 0 };
        let metadata_streams = u32::from(mapping.footprint_pages() > 0) + u32::from(validity.footprint_pages() > 0);
        Self {
            reserve: lanes + 2 + attempts + translation + log + saves,
            // What the first blocks of metadata leave out is room that metadata does not need yet.
            active: host_streams * lanes + (host_streams * (lanes - 1)).div_ceil(2) + metadata_streams * metadata_lanes,
            saves,
            rest: 1 + translation + log,
            trims: TrimBlocks::of(mapping.trim_pages(), g),
            metadata: if footprint > 0 { 2 * footprint.div_ceil(pages) + metadata_streams } else { 0 },
        }
    }

    /// Lanes of each stream of metadata: as many as of host data, if the device has blocks to spare
    /// for them.
    pub(super) fn metadata_lanes(&self, g: &Geometry, logical_pages: u32, lanes: u32) -> u32 {
        let data = logical_pages.div_ceil(g.pages_per_block());
        let spare = g.blocks().saturating_sub(data + self.work());
        (spare / SPARE_A_LANE).clamp(1, lanes)
    }

    /// Metadata blocks beyond which metadata is collected although it is held apart.
    ///
    /// Pages that are updated at random die out of a block of B pages after ln B times as many
    /// updates as there are pages, so log2 B times the live pages is room enough to wait; an eighth
    /// of what the device has to spare is the most that waiting may take.
    pub(super) fn metadata_limit(&self, g: &Geometry, logical_pages: u32, usable: u32) -> u32 {
        let data = logical_pages.div_ceil(g.pages_per_block());
        let spare = usable.saturating_sub(data + self.reserve + self.active + self.metadata);
        let patient = self.metadata / 2 * g.pages_per_block().ilog2();
        self.metadata + 1 + patient.min(spare / 8)
    }

    /// Keeps more blocks free, as far as there is room beside `needed` blocks and the trim map, so
    /// that the disk stays writable after blocks go bad in mounts.
    pub(super) fn keep_for_bad_blocks(&mut self, usable: u32, needed: u32) {
        if self.metadata == 0 {
            self.reserve += usable.saturating_sub(needed + self.trims.all).min(BAD_IN_MOUNTS);
        }
    }

    /// Blocks that are needed beside those of host data, unless there is a trim map.
    pub(super) const fn work(&self) -> u32 {
        self.reserve + self.active + self.metadata + 1
    }

    /// Whether so many logical pages fit a device with so many usable blocks; if not, why not.
    pub(super) fn check(g: &Geometry, logical_pages: u32, usable: u32, work: u32) -> Result<(), String> {
        let data = logical_pages.div_ceil(g.pages_per_block());
        if logical_pages > 0 && u64::from(data) + u64::from(work) <= u64::from(usable) {
            return Ok(());
        }
        let remedy = match usable.saturating_sub(work) * g.pages_per_block() {
            0 => format!("use fewer lanes or a smaller cache, or a device of at least {} blocks", work + 1),
            most => format!("ask for 1 to {most} logical pages, or use fewer lanes or a larger device"),
        };
        Err(format!(
            "{logical_pages} logical pages need {data} blocks of data and {work} to work in, but {usable} of {} blocks are \
             usable; {remedy}",
            g.blocks()
        ))
    }
}
