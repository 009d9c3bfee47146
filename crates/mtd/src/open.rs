//! Making a device on a chip, and opening one.

use crate::chip::{Chip, ChipError, Place, Shape};
use crate::device::{Block, EROFS, MtdNand};
use crate::error::MtdError;
use crate::header::{self, Found, HEADERS_MIN, RESERVED_BLOCKS};
use crate::record::RECORD_BYTES;
use crate::{Access, CharDevice};
use nand::laws::BlockState;
use nand::{Dimensions, Geometry};
use std::path::Path;

impl MtdNand<CharDevice> {
    /// Makes a device on the flash at `path`, `/dev/mtdN`. Every block of it is erased: **whatever
    /// was on it is gone**. Blocks that cannot be erased are marked bad.
    ///
    /// `owner` says to whoever opens it what is on it.
    ///
    /// # Errors
    /// [`MtdError`] says why the flash cannot be used. Nothing was erased if it is of the wrong
    /// kind, too small, or used by somebody.
    pub fn create(path: &Path, owner: &[u8]) -> Result<Self, MtdError> {
        Self::create_on(CharDevice::open(path, Access::ReadWrite)?, owner)
    }

    /// Opens the device on the flash at `path`. To open it for writing takes it alone.
    ///
    /// # Errors
    /// [`MtdError`] says what was found instead of a device that can be opened so.
    pub fn open(path: &Path, access: Access) -> Result<Self, MtdError> {
        let chip = CharDevice::open(path, access)?;
        match access {
            Access::ReadWrite => Self::open_on(chip),
            Access::ReadOnly => Self::open_read_only_on(chip),
        }
    }
}

impl<C: Chip> MtdNand<C> {
    /// Makes a device on a chip; as [`MtdNand::create`].
    ///
    /// # Errors
    /// As [`MtdNand::create`].
    pub fn create_on(mut chip: C, owner: &[u8]) -> Result<Self, MtdError> {
        let shape = chip.shape();
        let geometry = geometry(&shape)?;
        let header = header::encode(&shape, owner)?;
        // The headers go first and come last: what was begun and not ended is no device.
        let mut blocks = vec![Block::default(); geometry.blocks() as usize];
        for number in 0..shape.blocks {
            let erased = !is_bad(&mut chip, number)? && erase_or_retire(&mut chip, number)?;
            let Some(block) = number.checked_sub(RESERVED_BLOCKS) else { continue };
            let known = &mut blocks[block as usize];
            known.surveyed = erased;
            if !erased {
                known.state.mark_bad();
            }
        }
        let mut good = 0;
        for number in 0..RESERVED_BLOCKS {
            if !is_bad(&mut chip, number)? && write_header(&mut chip, number, &header)? {
                good += 1;
            }
        }
        if good < HEADERS_MIN {
            return Err(MtdError::Header { good });
        }
        Ok(Self::assemble(chip, geometry, owner, blocks))
    }

    /// Opens the device on a chip for reading and writing. A header that was lost is written again
    /// from another.
    ///
    /// # Errors
    /// As [`MtdNand::open`].
    pub fn open_on(chip: C) -> Result<Self, MtdError> {
        let (mut opened, lost) = Self::look(chip)?;
        let header = header::encode(&opened.chip.shape(), &opened.owner)?;
        for number in lost {
            if erase_or_retire(&mut opened.chip, number)? {
                write_header(&mut opened.chip, number, &header)?;
            }
        }
        Ok(opened)
    }

    /// Opens the device on a chip for reading. It is not written.
    ///
    /// # Errors
    /// As [`MtdNand::open`].
    pub fn open_read_only_on(chip: C) -> Result<Self, MtdError> {
        let (mut opened, _) = Self::look(chip)?;
        opened.refused = Some(EROFS);
        Ok(opened)
    }

    /// Reads the headers and the marks of bad blocks. Returns the good blocks that lack the header,
    /// too.
    fn look(mut chip: C) -> Result<(Self, Vec<u32>), MtdError> {
        let shape = chip.shape();
        let geometry = geometry(&shape)?;
        let mut owner: Option<Vec<u8>> = None;
        let (mut lost, mut version) = (Vec::new(), None);
        for number in 0..RESERVED_BLOCKS {
            if is_bad(&mut chip, number)? {
                continue;
            }
            match header::decode(&read_header(&mut chip, number)?, &shape)? {
                Found::Owner(found) if owner.as_ref().is_none_or(|owner| *owner == found) => owner = Some(found),
                Found::Version(found) => version = Some(found),
                Found::Owner(_) | Found::Nothing => lost.push(number),
            }
        }
        match (owner, version) {
            (_, Some(found)) => Err(MtdError::Version { found }),
            (None, None) => Err(MtdError::NotFormatted),
            (Some(owner), None) => {
                let mut blocks = vec![Block::default(); geometry.blocks() as usize];
                for (number, block) in (RESERVED_BLOCKS..).zip(&mut blocks) {
                    if is_bad(&mut chip, number)? {
                        block.state.mark_bad();
                    }
                }
                Ok((Self::assemble(chip, geometry, &owner, blocks), lost))
            }
        }
    }

    fn assemble(chip: C, geometry: Geometry, owner: &[u8], blocks: Vec<Block>) -> Self {
        debug_assert!(blocks.len() == geometry.blocks() as usize);
        debug_assert!(blocks.iter().all(|block| block.state.end() == BlockState::default().end()));
        Self {
            correctable: chip.shape().ecc_strength,
            page: vec![0; geometry.page_bytes() as usize].into_boxed_slice(),
            owner: owner.into(),
            refused: None,
            corrected: 0,
            chip,
            geometry,
            blocks,
        }
    }
}

/// What an FTL sees of a chip: one die, without the blocks for the header. MTD does not tell where
/// dies and planes are.
///
/// # Errors
/// [`MtdError`] if the chip is too small, or leaves too little OOB.
pub fn geometry(shape: &Shape) -> Result<Geometry, MtdError> {
    if (shape.oob_bytes as usize) < RECORD_BYTES {
        return Err(MtdError::OobBytes { available: shape.oob_bytes });
    }
    if shape.blocks <= RESERVED_BLOCKS {
        return Err(MtdError::Blocks { blocks: shape.blocks.into() });
    }
    Ok(Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: shape.blocks - RESERVED_BLOCKS,
        pages_per_block: shape.pages_per_block,
        page_bytes: shape.page_bytes,
        spare_bytes: shape.oob_bytes,
    })?)
}

fn is_bad<C: Chip>(chip: &mut C, block: u32) -> Result<bool, MtdError> {
    chip.is_bad(block).map_err(|source| MtdError::Chip { attempt: "looked at", block, source })
}

/// Marks a block bad. A mark that the chip cannot keep is no error: the block fails again.
fn retire<C: Chip>(chip: &mut C, block: u32) -> Result<(), MtdError> {
    match chip.mark_bad(block) {
        Err(source @ ChipError::Host(_)) => Err(MtdError::Chip { attempt: "marked bad", block, source }),
        _ => Ok(()),
    }
}

/// Erases a block, or marks it bad; whether it is erased.
fn erase_or_retire<C: Chip>(chip: &mut C, block: u32) -> Result<bool, MtdError> {
    match chip.erase(block) {
        Ok(()) => Ok(true),
        Err(source @ ChipError::Host(_)) => Err(MtdError::Chip { attempt: "erased", block, source }),
        Err(_) => retire(chip, block).map(|()| false),
    }
}

/// Writes the header to an erased block, or marks that bad; whether the header is there.
fn write_header<C: Chip>(chip: &mut C, block: u32, header: &[u8]) -> Result<bool, MtdError> {
    let page_bytes = chip.shape().page_bytes as usize;
    for (offset, page) in (0..).zip(header.chunks_exact(page_bytes)) {
        match chip.program(Place { block, offset }, page, &[]) {
            Ok(()) => {}
            Err(source @ ChipError::Host(_)) => return Err(MtdError::Chip { attempt: "written", block, source }),
            Err(_) => return retire(chip, block).map(|()| false),
        }
    }
    if read_header(chip, block)? == header { Ok(true) } else { retire(chip, block).map(|()| false) }
}

/// The pages of the header in a block; only the first, or none, if there is no readable header.
fn read_header<C: Chip>(chip: &mut C, block: u32) -> Result<Vec<u8>, MtdError> {
    let shape = chip.shape();
    let mut bytes = vec![0; shape.page_bytes as usize];
    let mut read = |offset, page: &mut [u8]| match chip.read(Place { block, offset }, Some(page), &mut []) {
        Ok(_) => Ok(true),
        Err(source @ ChipError::Host(_)) => Err(MtdError::Chip { attempt: "read", block, source }),
        Err(_) => Ok(false),
    };
    if !read(0, &mut bytes)? {
        return Ok(Vec::new());
    }
    for offset in 1..header::pages(&bytes, &shape).unwrap_or(1) {
        let at = bytes.len();
        bytes.resize(at + shape.page_bytes as usize, 0);
        if !read(offset, &mut bytes[at..])? {
            return Ok(Vec::new());
        }
    }
    Ok(bytes)
}
