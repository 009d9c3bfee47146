//! The pages of host data that were programmed last.

use super::{BlockInfo, FoundPage, Survey, written_seq};
use crate::contract::FtlError;
use crate::flash::Flash;
use crate::recovery::order;
use alloc::vec::Vec;
use nand::{BlockId, Geometry, Nand, PageKind};

/// Pages that mounts which are cut short in a row may program, and more.
const STRANDED: u64 = 4096;

impl Survey {
    /// The pages of host data in blocks that hold those of the `count` updates made last, those of
    /// a logical page side by side and the youngest of them first; and the sequence number, `bound`
    /// at least, from which on none of those is missing.
    ///
    /// An update is a page that was programmed and acknowledged. These are pages too, and no
    /// updates:
    /// 1. One page was programmed when power went, or its entry pushed another out of the ring of
    ///    updates and that one was not yet synchronised: the ring and this one are `count` + 1.
    /// 2. A program that failed or was cut short ends its block. Only if it is the block's last
    ///    page is the block filled to the end.
    /// 3. A mount that was cut short copied pages into blocks that it opened. It says so in their
    ///    first pages.
    ///
    /// So every other block that was filled to the end holds at least as many updates as it has
    /// pages, less one. Blocks that were not filled are looked into anyway. If `scans_all`, the
    /// other blocks of host data are read too; what they say is left out.
    ///
    /// # Errors
    /// As [`Survey::read_block`].
    pub fn programmed_last<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        count: Option<u32>,
        bound: u64,
        scans_all: bool,
    ) -> Result<(Vec<FoundPage>, u64), FtlError> {
        let geometry = *flash.nand().geometry();
        let of_updates = |info: &BlockInfo| info.kind == PageKind::User && info.whole && info.is_of_updates();
        let whole = self.blocks().filter(|(_, info)| of_updates(info));
        let mut firsts: Vec<u64> = whole.map(|(_, info)| info.first_seq).collect();
        firsts.sort_unstable_by(|a, b| b.cmp(a));
        let pages = geometry.pages_per_block();
        let blocks = count.filter(|_| pages > 1).map(|count| (count + 1).div_ceil(pages - 1) as usize);
        let bound = bound.max(blocks.and_then(|blocks| firsts.get(blocks - 1)).copied().unwrap_or(0));
        let mut found = self.read_kind(flash, PageKind::User, |info| scans_all || info.may_reach(bound))?;
        if scans_all {
            found.retain(|(ppn, _)| self.block(geometry.block_of(*ppn)).is_some_and(|info| info.may_reach(bound)));
        }
        order::by_tag(&mut found);
        debug_assert!(found.iter().all(|(_, spare)| spare.seq <= self.burned_seq));
        Ok((found, bound))
    }

    /// Of pages from blocks that were read whole, and of [`Survey::torn`] ones, those that were the
    /// last before power went once, as far as anybody can tell: the last of their blocks, and
    /// nothing younger that can be read carries one of the next two sequence numbers, or is a copy
    /// of a page with the next. A mount that could not read such a page may have programmed others
    /// since, and been cut short itself. A copy of the page is not younger.
    #[must_use]
    pub fn stranded(&self, geometry: &Geometry, pages: &[FoundPage]) -> Vec<FoundPage> {
        let mut written: Vec<(u64, u64)> = pages.iter().map(|(_, spare)| (spare.seq, written_seq(spare))).collect();
        written.sort_unstable();
        // A copy that a mount made, or a program that was tried again, tells that a page was begun.
        let mut copied: Vec<u64> = written.iter().filter(|(seq, at)| at < seq).map(|(_, at)| *at).collect();
        copied.sort_unstable();
        let youngest = self.largest_seq();
        let mut read: Vec<BlockId> = pages.iter().map(|(ppn, _)| geometry.block_of(*ppn)).collect();
        read.sort_unstable();
        let spans =
            |info: &BlockInfo, seq: u64| (info.first_seq..=info.last_seq).contains(&seq) && info.last_seq < u64::MAX;
        // A mount leaves the next number out, and a program that is tried again takes it.
        let follows = |seq: u64, next: u64| {
            // Not of the number after the next: a mount may have given that.
            if next == 1 && copied.binary_search(&(seq + 1)).is_ok() {
                return true;
            }
            let is_younger = |at: u64| next == 1 || at > seq;
            let unread = || self.blocks().filter(|(block, _)| read.binary_search(block).is_err());
            match written.binary_search_by_key(&(seq + next), |page| page.0) {
                Ok(at) => is_younger(written[at].1),
                Err(_) => unread().any(|(_, info)| {
                    spans(info, seq + next) && (info.first_seq < seq + next || is_younger(info.first_written))
                }),
            }
        };
        let mut tails = [pages, &self.torn].concat();
        order::by_place(&mut tails);
        let tails = tails.chunk_by(|one, next| geometry.block_of(one.0) == geometry.block_of(next.0));
        tails
            .filter_map(|of_block| of_block.last().copied())
            .filter(|(_, spare)| spare.seq < youngest && youngest - spare.seq < STRANDED)
            .filter(|(_, spare)| !follows(spare.seq, 1) && !follows(spare.seq, 2))
            .collect()
    }
}
