//! What a request of an FTL with log blocks does at most ([`crate::bound`]).
//!
//! A write writes its own page, and what the scheme asks for first: merges, of which each copies a
//! block's pages at most, moves of pages, and erases. If enough blocks were opened since the last
//! one, a checkpoint of all maps comes with it. That is the one term that grows with the device.

use super::area::Room;
use super::blocks::RESERVE;
use super::checkpoint::Extent;
use super::make::extent;
use super::scheme::Limits;
use crate::bound::{Bound, Most};
use crate::config::Config;
use nand::Geometry;

/// What a scheme's steps depend on.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// B: pages of a block.
    pub pages: u64,
    /// Logical blocks.
    pub logical_blocks: u64,
    /// Log blocks that there may be.
    pub logs: u64,
}

/// The steps of one write.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// Logical blocks gathered.
    pub merges: u64,
    /// Pages moved beside those.
    pub moved: u64,
    /// Blocks freed.
    pub freed: u64,
    /// Blocks opened beside one for each merge: each may have to be erased first, after power loss.
    pub opened: u64,
}

impl Steps {
    /// None but writing the page.
    pub const NONE: Self = Self { merges: 0, moved: 0, freed: 0, opened: 0 };
}

/// What the maps of a scheme have room for, by the numbers of logical and of over-provisioned
/// blocks: each of these may be a log block, unless the scheme opens fewer.
pub fn room_for(limits: Limits) -> impl Fn(u32, u32) -> Room {
    move |_, over| Room { logs: over.min(limits.most_logs), fused: 0 }
}

/// The most that requests do whose writes take these steps at most, if maps have this room.
pub fn bound(
    geometry: &Geometry,
    config: &Config,
    room: impl Fn(u32, u32) -> Room,
    steps: impl Fn(&Sizes) -> Steps,
) -> Option<Bound> {
    let (blocks, pages) = (geometry.blocks(), geometry.pages_per_block());
    let data = config.logical_pages.div_ceil(pages);
    let over_provisioned = blocks.checked_sub(data + RESERVE)?;
    let of_maps = extent(*geometry, config, room(data, over_provisioned));
    let checkpoint = of_maps.as_ref().map_or(Most::NONE, of_checkpoint);
    let each = of_maps.map_or(0, |extent| extent.blocks());
    let logs = over_provisioned.checked_sub(2 * each)?;
    let sizes = Sizes { pages: pages.into(), logical_blocks: data.into(), logs: logs.into() };
    let Steps { merges, moved, freed, opened } = steps(&sizes);
    let copied = merges * sizes.pages + moved;
    let of_scheme = Most { reads: copied, programs: copied + 1, erases: freed + merges + opened };
    Some(Bound { write: of_scheme.and(checkpoint), read: Most::pages(1, 0), flush: checkpoint.times(2) })
}

/// All maps, and after a mount a page that says that they are complete, and the blocks of one more
/// set.
fn of_checkpoint(extent: &Extent) -> Most {
    Most { reads: 0, programs: u64::from(extent.most_pages()) + 1, erases: 2 * u64::from(extent.blocks()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::config::Maps;
    use crate::placement::tests::geometry;

    #[test]
    fn without_checkpoints_every_spare_block_can_be_a_log_block() {
        let geometry = geometry();
        let (blocks, pages) = (u64::from(geometry.blocks()), u64::from(geometry.pages_per_block()));
        let config = Config { maps: Maps::NonVolatile, ..Config::new(geometry.pages_per_block()) };
        let all = |sizes: &Sizes| Steps { merges: sizes.logs, ..Steps::NONE };
        let most = bound(&geometry, &config, |_, logs| Room { logs, fused: 0 }, all).unwrap();
        assert_eq!(most.write.programs, (blocks - 1 - u64::from(RESERVE)) * pages + 1);
        assert_eq!((most.flush.programs, most.read.programs), (0, 0));
    }
}
