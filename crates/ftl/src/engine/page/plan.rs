//! What an engine is made of, and whether a device is large enough for it.

use super::PageOptions;
use super::overhead::{Overhead, Shares};
use crate::config::{Config, Preset};
use crate::contract::{FtlError, Shortage};
use crate::engine::read_only::Unmounted;
use crate::flash::Flash;
use crate::mapping::Mapping;
use crate::placement::{self, Placement};
use crate::space::blocks::SpaceOptions;
use crate::validity::Validity;
use crate::victim;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use nand::{BlockId, Capabilities, Geometry, Nand};

/// Parts by name, and whether the device is large enough: for formatting and mounting.
pub(super) struct Plan {
    pub(super) overhead: Overhead,
    /// Good blocks that the disk needs.
    pub(super) needed: u32,
    /// Blocks that are bad.
    bad_blocks: u32,
    pub(super) space: SpaceOptions,
    pub(super) placement: Box<dyn Placement>,
    pub(super) battery: bool,
    pub(super) flags_dead: bool,
}

/// The policies of a configuration.
struct Policies {
    victim: &'static victim::Entry,
    placement: Box<dyn Placement>,
}

impl PageOptions {
    fn refuse(&self, reason: String) -> FtlError {
        FtlError::Unsupported { ftl: self.name, reason }
    }
}

impl Policies {
    /// By name, if the device can do what the FTL asks of it.
    fn find(
        geometry: &Geometry,
        can: Capabilities,
        config: &Config,
        options: PageOptions,
        keeps_pasts: bool,
    ) -> Result<Self, FtlError> {
        let can = can.spare_reprograms;
        if can < options.flags {
            return Err(options.refuse(format!(
                "it sets flags of a programmed page up to {} times, and the device can {can} times; use a device with \
                 spare_reprograms of at least {}",
                options.flags, options.flags
            )));
        }
        let victim = victim::find(config.victim)
            .ok_or_else(|| options.refuse(format!("there is no victim policy '{}'", config.victim)))?;
        let placement = config.placement.unwrap_or(Preset::PAPER.placement);
        let placement = placement::find(placement)
            .ok_or_else(|| options.refuse(format!("there is no placement policy '{placement}'")))?;
        let placement = (placement.make)(config, geometry, keeps_pasts);
        if geometry.pages_per_block() > u32::from(u16::MAX) {
            return Err(options.refuse(format!("blocks of {} pages exceed 65535", geometry.pages_per_block())));
        }
        Ok(Self { victim, placement })
    }
}

impl Plan {
    pub(super) fn new<N: Nand, M: Mapping, V: Validity>(
        nand: &N,
        config: &Config,
        options: PageOptions,
        mapping: &M,
        validity: &V,
    ) -> Result<Self, FtlError> {
        if let Some(reason) = mapping.refusal() {
            return Err(options.refuse(reason));
        }
        let geometry = nand.geometry();
        let policies = Policies::find(geometry, nand.capabilities(), config, options, mapping.keeps_pasts())?;
        let shares = Shares::of(geometry, config, options, policies.placement.streams(), mapping, validity);
        let bad_blocks = (0..geometry.blocks()).filter(|&block| nand.is_bad(BlockId(block))).count() as u32;
        Self::with(geometry, bad_blocks, config, options, policies, shares)
    }

    fn with(
        geometry: &Geometry,
        bad_blocks: u32,
        config: &Config,
        options: PageOptions,
        Policies { victim, placement }: Policies,
        Shares { mut overhead, host_streams, lanes, metadata_lanes, .. }: Shares,
    ) -> Result<Self, FtlError> {
        Overhead::check(geometry, config.logical_pages, geometry.blocks(), overhead.work())
            .map_err(|reason| options.refuse(reason))?;
        let needed = config.logical_pages.div_ceil(geometry.pages_per_block()) + overhead.work();
        overhead.keep_for_bad_blocks(geometry.blocks() - bad_blocks, needed);
        let space = SpaceOptions {
            host_streams,
            lanes,
            metadata_lanes,
            victim,
            metadata_apart: options.metadata_apart,
            has_queues: placement.names_victims(),
            level_wear: config.wear.is_some(),
        };
        let (battery, flags_dead) = (options.battery && config.battery, options.flags > 0);
        Ok(Self { overhead, needed, bad_blocks, space, placement, battery, flags_dead })
    }

    /// Refuses to make a disk of a device of which too many blocks are bad.
    pub(super) fn for_format(
        self,
        geometry: &Geometry,
        config: &Config,
        options: PageOptions,
    ) -> Result<Self, FtlError> {
        let usable = geometry.blocks() - self.bad_blocks;
        // Only here: a disk that was made before there were trim maps can do without.
        let work = self.overhead.work() + self.overhead.trims.all;
        match Overhead::check(geometry, config.logical_pages, usable, work) {
            Ok(()) => Ok(self),
            Err(reason) => Err(options.refuse(reason)),
        }
    }

    /// Gives the device back if too many blocks have gone bad since a disk was made of it.
    pub(super) fn for_mount<N: Nand>(self, flash: Flash<N>) -> Result<(Self, Flash<N>), Unmounted<N>> {
        let blocks = flash.nand().geometry().blocks();
        let Self { needed, bad_blocks, .. } = self;
        if bad_blocks + needed <= blocks {
            return Ok((self, flash));
        }
        Err(Unmounted::with(flash, Shortage { bad_blocks, blocks, needed }.into()))
    }
}
