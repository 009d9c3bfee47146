//! Pages that are the only ones of their blocks.

use super::Space;
use nand::{PageKind, Ppn};

impl Space {
    /// The first page of each block of metadata of a kind that is being filled and has no second
    /// one.
    pub fn alone(&self, kind: PageKind) -> impl Iterator<Item = Ppn> {
        let lanes = self.streams.iter().filter(move |stream| stream.kind == kind).flat_map(|stream| &stream.lanes);
        let begun = lanes.filter(|lane| lane.next == 1 && lane.block.is_some());
        begun.map(|lane| self.geometry.page_at(lane.block, 0))
    }
}
