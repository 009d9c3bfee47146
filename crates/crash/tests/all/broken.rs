//! An FTL that is broken on purpose, in one of several ways.

#![allow(clippy::unwrap_used)]

use ftl::ftls::Entry;
use ftl::{Config, Flash, Ftl, FtlError, MountReport, RamReport, Shortage};
use nand::{BlockId, Lpn, Nand, NandError, PageKind, Ppn};
use table::AnyBytes;

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
    /// Of a page that reads as zeros no byte is set.
    Mute,
    /// A page that could not be read once reads as whatever its flash page holds by then.
    Reused,
}

struct Broken {
    inner: Box<dyn Ftl<AnyBytes>>,
    defect: Defect,
    /// Acknowledged, not written.
    held: Option<(Lpn, Vec<u8>)>,
    mounted: bool,
    /// Which page could not be read, and where it was.
    unreadable: Option<(Lpn, Ppn)>,
}

impl Broken {
    fn new(inner: Box<dyn Ftl<AnyBytes>>, defect: Defect, mounted: bool) -> Self {
        Self { inner, defect, held: None, mounted, unreadable: None }
    }

    /// The page that has come to be where the unreadable one was.
    fn successor(&mut self, lpn: Lpn) -> Option<Lpn> {
        let (_, ppn) = self.unreadable.filter(|(unreadable, _)| *unreadable == lpn)?;
        let spare = self.inner.flash_mut().nand_mut().read_spare(ppn).ok()??;
        (spare.kind == PageKind::User && spare.tag != lpn.0).then_some(Lpn(spare.tag))
    }

    fn settle(&mut self) -> Result<(), FtlError> {
        match self.held.take() {
            Some((lpn, data)) => self.inner.write(lpn, &data),
            None => Ok(()),
        }
    }
}

impl Ftl<AnyBytes> for Broken {
    fn logical_pages(&self) -> u32 {
        self.inner.logical_pages()
    }

    fn read(&mut self, lpn: Lpn, out: &mut [u8]) -> Result<(), FtlError> {
        if let Some((_, held)) = self.held.as_ref().filter(|(held, _)| *held == lpn) {
            out.copy_from_slice(held);
            return Ok(());
        }
        let mut data = out.to_vec();
        match self.defect {
            Defect::Neighbour if self.mounted && lpn.0 == 7 => self.inner.read(Lpn(6), out),
            Defect::Mute => {
                self.inner.read(lpn, &mut data)?;
                if data.iter().any(|byte| *byte != 0) {
                    out.copy_from_slice(&data);
                }
                Ok(())
            }
            Defect::Reused => {
                let lpn = self.successor(lpn).unwrap_or(lpn);
                let outcome = self.inner.read(lpn, out);
                if let Err(FtlError::Nand(NandError::Uncorrectable { ppn })) = outcome {
                    self.unreadable = Some((lpn, ppn));
                }
                outcome
            }
            _ => self.inner.read(lpn, out),
        }
    }

    fn write(&mut self, lpn: Lpn, data: &[u8]) -> Result<(), FtlError> {
        self.unreadable = self.unreadable.filter(|(unreadable, _)| *unreadable != lpn);
        if self.defect != Defect::Early {
            return self.inner.write(lpn, data);
        }
        self.settle()?;
        self.held = Some((lpn, data.to_vec()));
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

    fn flash(&self) -> &Flash<AnyBytes> {
        self.inner.flash()
    }

    fn flash_mut(&mut self) -> &mut Flash<AnyBytes> {
        self.inner.flash_mut()
    }

    fn into_flash(self: Box<Self>) -> Flash<AnyBytes> {
        self.inner.into_flash()
    }

    fn check(&mut self) -> Result<(), String> {
        self.inner.check()
    }
}

/// The FTL that is broken.
pub fn page() -> Entry<AnyBytes> {
    table::find("page").unwrap()
}

/// Makes a disk with a defect.
///
/// # Errors
/// Those of the FTL below.
pub fn format(flash: Flash<AnyBytes>, config: &Config, defect: Defect) -> Result<Box<dyn Ftl<AnyBytes>>, FtlError> {
    Ok(Box::new(Broken::new((page().format)(flash, config)?, defect, false)))
}

/// What a mount answers.
pub type Mounted = Result<(Box<dyn Ftl<AnyBytes>>, MountReport), FtlError>;

/// Mounts a disk with a defect.
///
/// # Errors
/// Those of the FTL below.
pub fn mount(mut flash: Flash<AnyBytes>, config: &Config, defect: Defect) -> Mounted {
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
        Defect::Early | Defect::Neighbour | Defect::Mute | Defect::Reused => {}
    }
    let (inner, report) = (page().mount.unwrap())(flash, config)?;
    Ok((Box::new(Broken::new(inner, defect, true)), report))
}
