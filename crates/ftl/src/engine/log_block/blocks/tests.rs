#![allow(clippy::unwrap_used)]

use super::*;
use crate::placement::tests::geometry;
use nand::{Capabilities, SimNand};

fn blocks() -> Blocks {
    let nand = SimNand::new(geometry(), Capabilities::MODERN);
    Blocks::new(&nand, ProgramOrder::Sequential, 2, 0, None)
}

/// Takes and erases blocks until each of the first so many has as many erases.
fn wear_out(blocks: &mut Blocks, count: usize, erases: u32) -> Vec<BlockId> {
    let worn: Vec<BlockId> = (0..count).map(|_| blocks.take(Role::Data, 0).unwrap()).collect();
    for block in &worn {
        blocks.erased(*block);
        blocks.records[block.index()].erase_count = erases;
    }
    blocks.rank_free(|block| u64::from(!worn.contains(&block)));
    worn
}

#[test]
fn a_block_far_more_worn_than_one_of_the_next_few_is_passed_over() {
    let mut blocks = blocks();
    let worn = wear_out(&mut blocks, 1, WORN);
    let order: Vec<BlockId> = (0..blocks.free_blocks()).map(|_| blocks.take(Role::Data, 0).unwrap()).collect();
    assert_eq!(order.last(), Some(&worn[0]), "all others have far fewer erases");
    let mut blocks = self::blocks();
    let worn = wear_out(&mut blocks, 1, WORN - 1);
    assert_eq!(blocks.take(Role::Data, 0), Some(worn[0]), "it is about as worn as the others");
}

#[test]
fn worn_blocks_wait_for_the_next_few_only() {
    let mut blocks = blocks();
    let worn = wear_out(&mut blocks, CHOICE, WORN);
    assert!(blocks.free_blocks() as usize > CHOICE);
    assert_eq!(blocks.take(Role::Data, 0), Some(worn[0]), "blocks behind the first {CHOICE} have far fewer erases");
}

#[test]
fn no_block_is_taken_before_one_that_nobody_saw_being_erased() {
    let mut blocks = blocks();
    let given_up = blocks.take(Role::Checkpoint, SHARED).unwrap();
    blocks.given_up(given_up);
    let worn = wear_out(&mut blocks, 2, WORN);
    let place = |block| if worn.contains(&block) { 0 } else { 1 + u64::from(block != given_up) };
    blocks.rank_free(place);
    let order: Vec<BlockId> = (0..3).map(|_| blocks.take(Role::Data, 0).unwrap()).collect();
    assert_eq!(order, [worn[0], worn[1], given_up], "those behind it have far fewer erases than the first");
}
