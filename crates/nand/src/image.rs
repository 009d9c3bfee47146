//! A device in memory, saved to a file and opened from it.
//!
//! # Format, version 2, little endian
//! ```text
//! header   8 B  "OFTLNAND"          4 B  version
//!         28 B  dimensions, as in [`Dimensions`]
//!          5 B  program order (0 sequential, 1 free), spare reprograms, multi-plane, copy-back, 0
//!          8 B  check value of all of the above
//! a block  4 B  erase count         4 B  one more than the highest page programmed
//!          1 B  retired (0, 1), then that many pages
//! a page   1 B  0 erased, 1 host data, 2 metadata; if not erased:
//!          1 B  spare reprograms   29 B  spare area   4 B  length   the bytes programmed
//! end      8 B  check value of everything before
//! ```
//! The check value is FNV-1a, 64 bits: it finds accidents, not attacks.

use crate::geometry::{Capabilities, Dimensions, Geometry, GeometryError, ProgramOrder};
use crate::laws::BlockState;
use crate::mem::{Block, MemNand, Page};
use crate::spare::Spare;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

const MAGIC: [u8; 8] = *b"OFTLNAND";
/// Version of the image format.
pub const IMAGE_VERSION: u32 = 2;

/// Why an image was not opened or saved; it says what was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The operating system refused.
    #[error("the image cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// The file is something else.
    #[error("not a NAND image: it starts with {found:02x?}, an image with {MAGIC:02x?} (OFTLNAND)")]
    Foreign {
        /// The first bytes of the file.
        found: [u8; 8],
    },
    /// The image is of another format version.
    #[error("the image has format version {found}; this program reads version {IMAGE_VERSION}")]
    Version {
        /// The version found.
        found: u32,
    },
    /// The file ends before the image does.
    #[error("the image is truncated: it ends after {bytes} B, inside its {part}")]
    Truncated {
        /// Length of the file, in bytes.
        bytes: u64,
        /// What was being read.
        part: &'static str,
    },
    /// The bytes are not those that were saved.
    #[error("the image is damaged: the check value of its {part} is {found:#018x}, its bytes give {computed:#018x}")]
    Checksum {
        /// What the check value covers.
        part: &'static str,
        /// What the file says.
        found: u64,
        /// What its bytes give.
        computed: u64,
    },
    /// The header names a geometry that cannot be.
    #[error("the image has an impossible geometry: {0}")]
    Geometry(#[from] GeometryError),
    /// A field has a value that this version never writes.
    #[error("the image is malformed: {what} is {found}")]
    Malformed {
        /// The field.
        what: &'static str,
        /// Its value.
        found: u64,
    },
}

impl MemNand {
    /// Saves the device to a file, replacing it: written beside it, synced, then renamed, so that
    /// a crash leaves the old image or the new one.
    ///
    /// # Errors
    /// [`ImageError::Io`].
    pub fn save(&self, path: &Path) -> Result<(), ImageError> {
        let mut beside = std::ffi::OsString::from(path);
        beside.push(".new");
        let mut file = BufWriter::new(File::create(&beside)?);
        self.write_image(&mut file)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&beside, path)?;
        Ok(())
    }

    /// Opens a saved device.
    ///
    /// # Errors
    /// [`ImageError`] if the file is no image of this version, truncated or damaged.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        Self::read_image(&mut BufReader::new(File::open(path)?))
    }

    /// Writes the image.
    ///
    /// # Errors
    /// [`ImageError::Io`].
    pub fn write_image(&self, out: &mut impl Write) -> Result<(), ImageError> {
        let mut out = Summed { inner: out, sum: FNV_START, bytes: 0 };
        out.put(&MAGIC)?;
        out.put(&IMAGE_VERSION.to_le_bytes())?;
        let d = self.geometry.dimensions();
        for value in
            [d.channels, d.dies_per_channel, d.planes_per_die, d.blocks, d.pages_per_block, d.page_bytes, d.spare_bytes]
        {
            out.put(&value.to_le_bytes())?;
        }
        let c = self.capabilities;
        let free = u8::from(c.program_order == ProgramOrder::Free);
        out.put(&[free, c.spare_reprograms, u8::from(c.multi_plane), u8::from(c.copy_back), 0])?;
        out.put_sum()?;
        for block in &self.blocks {
            let end = block.state.end();
            debug_assert!(end as usize <= block.pages.len() && end <= d.pages_per_block);
            out.put(&block.erase_count.to_le_bytes())?;
            out.put(&end.to_le_bytes())?;
            out.put(&[u8::from(block.state.is_bad())])?;
            for page in &block.pages[..end as usize] {
                out.put_page(page.as_ref())?;
            }
        }
        out.put_sum()?;
        Ok(())
    }

    /// Reads an image; it must end where the input does.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn read_image(input: &mut impl Read) -> Result<Self, ImageError> {
        let mut input = Summed { inner: input, sum: FNV_START, bytes: 0 };
        let (geometry, capabilities) = input.header()?;
        let mut blocks = Vec::new();
        for _ in 0..geometry.blocks() {
            blocks.push(input.block(&geometry)?);
        }
        debug_assert!(blocks.len() == geometry.blocks() as usize);
        input.check_sum("contents")?;
        if input.inner.read(&mut [0])? != 0 {
            return Err(ImageError::Malformed { what: "a byte after the end, at offset", found: input.bytes });
        }
        Ok(Self { blocks, ..Self::new(geometry, capabilities) })
    }
}

const FNV_START: u64 = 0xCBF2_9CE4_8422_2325;

/// A stream and the check value of what went through it.
struct Summed<'a, T> {
    inner: &'a mut T,
    sum: u64,
    bytes: u64,
}

impl<T> Summed<'_, T> {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.sum = (self.sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        }
        self.bytes += bytes.len() as u64;
    }
}

impl<W: Write> Summed<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), ImageError> {
        self.inner.write_all(bytes)?;
        self.add(bytes);
        Ok(())
    }

    fn put_sum(&mut self) -> Result<(), ImageError> {
        self.put(&self.sum.to_le_bytes())
    }

    fn put_page(&mut self, page: Option<&Page>) -> Result<(), ImageError> {
        let Some(page) = page else { return self.put(&[0]) };
        self.put(&[1 + u8::from(page.meta), page.reprograms])?;
        self.put(&page.spare)?;
        self.put(&(page.data.len() as u32).to_le_bytes())?;
        self.put(&page.data)
    }
}

impl<R: Read> Summed<'_, R> {
    fn fill(&mut self, out: &mut [u8], part: &'static str) -> Result<(), ImageError> {
        let mut filled = 0;
        while filled < out.len() {
            match self.inner.read(&mut out[filled..]) {
                Ok(0) => return Err(ImageError::Truncated { bytes: self.bytes + filled as u64, part }),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.add(out);
        Ok(())
    }

    fn take<const BYTES: usize>(&mut self, part: &'static str) -> Result<[u8; BYTES], ImageError> {
        let mut bytes = [0; BYTES];
        self.fill(&mut bytes, part)?;
        Ok(bytes)
    }

    fn word(&mut self, part: &'static str) -> Result<u32, ImageError> {
        Ok(u32::from_le_bytes(self.take(part)?))
    }

    fn flag(&mut self, what: &'static str) -> Result<bool, ImageError> {
        match self.take(what)? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(ImageError::Malformed { what, found: other.into() }),
        }
    }

    fn check_sum(&mut self, part: &'static str) -> Result<(), ImageError> {
        let computed = self.sum;
        let found = u64::from_le_bytes(self.take(part)?);
        if found == computed { Ok(()) } else { Err(ImageError::Checksum { part, found, computed }) }
    }

    fn header(&mut self) -> Result<(Geometry, Capabilities), ImageError> {
        let found = self.take("header")?;
        if found != MAGIC {
            return Err(ImageError::Foreign { found });
        }
        let found = self.word("header")?;
        if found != IMAGE_VERSION {
            return Err(ImageError::Version { found });
        }
        let dimensions = Dimensions {
            channels: self.word("header")?,
            dies_per_channel: self.word("header")?,
            planes_per_die: self.word("header")?,
            blocks: self.word("header")?,
            pages_per_block: self.word("header")?,
            page_bytes: self.word("header")?,
            spare_bytes: self.word("header")?,
        };
        let free = self.flag("the program order")?;
        let capabilities = Capabilities {
            program_order: if free { ProgramOrder::Free } else { ProgramOrder::Sequential },
            spare_reprograms: self.take::<1>("header")?[0],
            multi_plane: self.flag("the multi-plane flag")?,
            copy_back: self.flag("the copy-back flag")?,
        };
        self.take::<1>("header")?;
        debug_assert!(self.bytes == 8 + 4 + 28 + 5, "the header has another length than is written");
        self.check_sum("header")?;
        Ok((Geometry::new(dimensions)?, capabilities))
    }

    fn block(&mut self, geometry: &Geometry) -> Result<Block, ImageError> {
        let part = "blocks";
        let erase_count = self.word(part)?;
        let end = self.word(part)?;
        if end > geometry.pages_per_block() {
            return Err(ImageError::Malformed { what: "the number of pages programmed in a block", found: end.into() });
        }
        let bad = self.flag("the mark of a retired block")?;
        let mut state = BlockState::default();
        let mut pages = Vec::new();
        for offset in 0..end {
            let page = self.page(geometry)?;
            if page.is_some() {
                state.programmed(offset);
            }
            pages.push(page);
        }
        if state.end() != end {
            return Err(ImageError::Malformed {
                what: "an erased page at the end of a block, of length",
                found: end.into(),
            });
        }
        if bad {
            state.mark_bad();
        }
        debug_assert!(pages.len() == end as usize && state.end() == end);
        Ok(Block { state, erase_count, pages: Arc::new(pages) })
    }

    fn page(&mut self, geometry: &Geometry) -> Result<Option<Page>, ImageError> {
        let part = "pages";
        let meta = match self.take(part)? {
            [0] => return Ok(None),
            [1] => false,
            [2] => true,
            [other] => return Err(ImageError::Malformed { what: "the kind of a page", found: other.into() }),
        };
        let [reprograms] = self.take(part)?;
        let spare: [u8; Spare::BYTES] = self.take(part)?;
        let length = self.word(part)?;
        if length > geometry.page_bytes() || !meta && length != geometry.page_bytes() {
            return Err(ImageError::Malformed { what: "the length of a page", found: length.into() });
        }
        let mut data = vec![0; length as usize];
        self.fill(&mut data, part)?;
        Ok(Some(Page { meta, reprograms, spare, data: data.into() }))
    }
}
