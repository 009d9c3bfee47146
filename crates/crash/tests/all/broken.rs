//! An FTL that is broken on purpose, in one of several ways.

#![allow(clippy::unwrap_used)]

use ftl::ftls::Entry;
use ftl::{Config, Flash, Ftl, FtlError, MountReport, RamReport, Shortage};
use nand::{BlockId, Lpn, Nand, Stamp};
use table::AnyStamps;

/// What is broken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// A write is acknowledged before its page is programmed.
    Early,
    /// A mount retires a good block.
    Leak,
    /// A mount trusts what it reads first: it reads a page, and panics if that cannot be read.
    Panic,
    /// A mount waits for a page to become readable.
    Hang,
    /// After a mount a page reads as its neighbour.
    Neighbour,
}

struct Broken {
    inner: Box<dyn Ftl<AnyStamps>>,
    defect: Defect,
    /// Acknowledged, not written.
    held: Option<(Lpn, Stamp)>,
    mounted: bool,
}

impl Broken {
    fn settle(&mut self) -> Result<(), FtlError> {
        match self.held.take() {
            Some((lpn, stamp)) => self.inner.write(lpn, &stamp),
            None => Ok(()),
        }
    }
}

impl Ftl<AnyStamps> for Broken {
    fn logical_pages(&self) -> u32 {
        self.inner.logical_pages()
    }

    fn read(&mut self, lpn: Lpn, out: &mut Stamp) -> Result<(), FtlError> {
        if let Some((_, held)) = self.held.filter(|(held, _)| *held == lpn) {
            *out = held;
            return Ok(());
        }
        let neighbour = self.mounted && self.defect == Defect::Neighbour && lpn.0 == 7;
        self.inner.read(if neighbour { Lpn(6) } else { lpn }, out)
    }

    fn write(&mut self, lpn: Lpn, data: &Stamp) -> Result<(), FtlError> {
        if self.defect != Defect::Early {
            return self.inner.write(lpn, data);
        }
        self.settle()?;
        self.held = Some((lpn, *data));
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        self.settle()?;
        self.inner.trim(lpn, count)
    }

    fn flush(&mut self) -> Result<(), FtlError> {
        self.settle()?;
        self.inner.flush()
    }

    fn idle(&mut self) -> Result<bool, FtlError> {
        self.inner.idle()
    }

    fn ram(&self) -> RamReport {
        self.inner.ram()
    }

    fn free_blocks(&self) -> u32 {
        self.inner.free_blocks()
    }

    fn read_only(&self) -> Option<Shortage> {
        self.inner.read_only()
    }

    fn flash(&self) -> &Flash<AnyStamps> {
        self.inner.flash()
    }

    fn flash_mut(&mut self) -> &mut Flash<AnyStamps> {
        self.inner.flash_mut()
    }

    fn into_flash(self: Box<Self>) -> Flash<AnyStamps> {
        self.inner.into_flash()
    }

    fn check(&mut self) -> Result<(), String> {
        self.inner.check()
    }
}

/// The FTL that is broken.
pub fn page() -> Entry<AnyStamps> {
    table::find("page").unwrap()
}

/// Makes a disk with a defect.
///
/// # Errors
/// Those of the FTL below.
pub fn format(flash: Flash<AnyStamps>, config: &Config, defect: Defect) -> Result<Box<dyn Ftl<AnyStamps>>, FtlError> {
    Ok(Box::new(Broken { inner: (page().format)(flash, config)?, defect, held: None, mounted: false }))
}

/// What a mount answers.
pub type Mounted = Result<(Box<dyn Ftl<AnyStamps>>, MountReport), FtlError>;

/// Mounts a disk with a defect.
///
/// # Errors
/// Those of the FTL below.
pub fn mount(mut flash: Flash<AnyStamps>, config: &Config, defect: Defect) -> Mounted {
    let nand = flash.nand_mut();
    let blocks = nand.geometry().blocks();
    let pages: Vec<_> = (0..nand.geometry().pages()).map(nand::Ppn).collect();
    match defect {
        Defect::Leak => {
            let good = (0..blocks).rev().map(BlockId).find(|&block| !nand.is_bad(block)).unwrap();
            nand.mark_bad(good)?;
        }
        Defect::Panic => pages.iter().for_each(|&ppn| {
            nand.read_spare(ppn).expect("every page can be read");
        }),
        Defect::Hang => pages
            .iter()
            .for_each(|&ppn| while matches!(nand.read_spare(ppn), Err(nand::NandError::Uncorrectable { .. })) {}),
        Defect::Early | Defect::Neighbour => {}
    }
    let (inner, report) = (page().mount.unwrap())(flash, config)?;
    Ok((Box::new(Broken { inner, defect, held: None, mounted: true }), report))
}
