//! A chip in memory that fails where it is told to. It has no ECC.
#![allow(missing_docs, clippy::unwrap_used)]

use openftl_mtd::{Chip, ChipError, Place, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

pub const SMALL: Shape = Shape { blocks: 24, pages_per_block: 8, page_bytes: 512, oob_bytes: 38, ecc_strength: 1 };

/// A chip that all its clones share.
#[derive(Clone, Debug)]
pub struct Memory {
    shape: Shape,
    cells: Arc<Mutex<Cells>>,
}

#[derive(Debug, Default)]
pub struct Cells {
    /// Data and OOB of programmed pages.
    pages: BTreeMap<(u32, u32), (Vec<u8>, Vec<u8>)>,
    pub bad: BTreeSet<u32>,
    /// Blocks that cannot be erased.
    pub weak_blocks: BTreeSet<u32>,
    /// Blocks in which no page can be programmed.
    pub weak_pages: BTreeSet<u32>,
    /// Operations that are done before power is cut in the middle of one, if it is. From then on
    /// everything is refused.
    pub power: Option<u32>,
    dead: bool,
    /// Programs and erases that are still to fail, one in a hundred.
    failures_left: u32,
    random: u32,
}

impl Memory {
    pub fn new(shape: Shape) -> Self {
        Self { shape, cells: Arc::default() }
    }

    pub fn cells(&self) -> MutexGuard<'_, Cells> {
        self.cells.lock().unwrap()
    }
}

impl Cells {
    /// Makes some of the programs and erases to come fail.
    pub fn fail(&mut self, failures: u32) {
        self.failures_left = failures;
    }

    /// Bad blocks, and failures that are still to come.
    pub fn failed(&self) -> (usize, u32) {
        (self.bad.len(), self.failures_left)
    }

    /// Power is back.
    pub fn power_up(&mut self) {
        (self.power, self.dead) = (None, false);
    }

    fn next(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.random >> 8
    }

    /// Before something is changed: whether it is done, or only in part.
    fn step(&mut self) -> Result<Step, ChipError> {
        if self.dead {
            return Err(GONE);
        }
        match &mut self.power {
            Some(0) => {
                self.dead = true;
                return Ok(Step::Part);
            }
            Some(left) => *left -= 1,
            None => {}
        }
        if self.failures_left > 0 && self.next().is_multiple_of(100) {
            self.failures_left -= 1;
            return Err(ChipError::Failed);
        }
        Ok(Step::Whole)
    }

    /// Makes bits rise in the data of a page, in its OOB, in both or in neither.
    fn tear(&mut self, data: &mut [u8], oob: &mut [u8]) {
        let parts = self.next();
        for (part, bytes) in [(1, data), (2, oob)] {
            for byte in bytes.iter_mut().filter(|_| parts & part != 0) {
                match self.next() % 4 {
                    0 => *byte = 0xFF,
                    1 => *byte |= self.next() as u8,
                    _ => {}
                }
            }
        }
    }
}

/// How much of an operation is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Whole,
    Part,
}

/// What is answered without power.
const GONE: ChipError = ChipError::Host(nand::HostError(19));

impl Chip for Memory {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn read(&mut self, at: Place, data: Option<&mut [u8]>, oob: &mut [u8]) -> Result<u32, ChipError> {
        let cells = self.cells();
        let page = cells.pages.get(&(at.block, at.offset));
        let copy = |to: &mut [u8], from: Option<&Vec<u8>>| match from {
            Some(from) => (0..).zip(to).for_each(|(at, byte)| *byte = from.get(at).copied().unwrap_or(0xFF)),
            None => to.fill(0xFF),
        };
        if let Some(data) = data {
            copy(data, page.map(|page| &page.0));
        }
        copy(oob, page.map(|page| &page.1));
        Ok(0)
    }

    fn program(&mut self, at: Place, data: &[u8], oob: &[u8]) -> Result<(), ChipError> {
        let oob_bytes = self.shape.oob_bytes as usize;
        let mut cells = self.cells();
        let step = cells.step()?;
        if cells.weak_pages.contains(&at.block) {
            return Err(ChipError::Failed);
        }
        let (mut data, mut oob) = (data.to_vec(), oob.to_vec());
        if step == Step::Part {
            cells.tear(&mut data, &mut oob);
        }
        let page = cells.pages.entry((at.block, at.offset));
        let page = page.or_insert_with(|| (vec![0xFF; data.len()], vec![0xFF; oob_bytes]));
        // Bits of a page that is programmed again only fall.
        page.0.iter_mut().zip(data).for_each(|(cell, byte)| *cell &= byte);
        page.1.iter_mut().zip(oob).for_each(|(cell, byte)| *cell &= byte);
        if step == Step::Whole { Ok(()) } else { Err(GONE) }
    }

    fn erase(&mut self, block: u32) -> Result<(), ChipError> {
        let mut cells = self.cells();
        let step = cells.step()?;
        if cells.weak_blocks.contains(&block) {
            return Err(ChipError::Failed);
        }
        if step == Step::Whole {
            cells.pages.retain(|(other, _), _| *other != block);
            return Ok(());
        }
        let pages: Vec<_> = cells.pages.keys().copied().filter(|(other, _)| *other == block).collect();
        for at in pages {
            let Some((mut data, mut oob)) = cells.pages.remove(&at) else { continue };
            if cells.next().is_multiple_of(3) {
                continue;
            }
            cells.tear(&mut data, &mut oob);
            cells.pages.insert(at, (data, oob));
        }
        Err(GONE)
    }

    fn is_bad(&mut self, block: u32) -> Result<bool, ChipError> {
        Ok(self.cells().bad.contains(&block))
    }

    fn mark_bad(&mut self, block: u32) -> Result<(), ChipError> {
        let mut cells = self.cells();
        if cells.dead {
            return Err(GONE);
        }
        // The kernel does the same.
        cells.pages.retain(|(other, _), _| *other != block);
        cells.bad.insert(block);
        Ok(())
    }
}
