//! What every flash translation layer offers, and what a host may rely on.

use crate::flash::{Flash, OpCounts};
use crate::inspect::Inspector;
use crate::placement::Future;
use crate::victim::by_bank::Banked;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use nand::{Lpn, Nand, NandError};

/// Bytes of RAM held by one structure of an FTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RamItem {
    /// The structure, in the field's terms: `gmd`, `cmt`, `pvb`, `bvc`, `run_directories`, …
    pub name: &'static str,
    /// Bytes it holds now, allocated capacity included.
    pub bytes: u64,
}

/// A number that shows what an FTL is doing, beside RAM and flash operations: a state as it is now,
/// or a running total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// What it counts: `fused_blocks`, `collections`, …
    pub name: &'static str,
    /// Its value now.
    pub value: u64,
}

/// Every structure that an FTL holds in RAM, by name.
pub type RamReport = Vec<RamItem>;

/// One step of a mount, and what it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountStep {
    /// What was done.
    pub name: &'static str,
    /// The flash operations it took.
    pub ops: OpCounts,
}

impl MountStep {
    /// What a step is called, but for its number, in which nothing is done but collections until
    /// enough blocks are free: the next write would do them otherwise, and how many there are
    /// depends on when power was cut.
    pub const FREE_BLOCKS: &'static str = "free blocks";
}

/// What a mount found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountReport {
    /// The steps, in order.
    pub steps: Vec<MountStep>,
    /// Pages that could not be read: torn by power loss, or worn. None of them is trusted.
    pub unreadable_pages: u64,
    /// Mapping entries made from spare areas of pages of host data.
    pub rebuilt_entries: u64,
    /// Why the disk can only be read, if it cannot be written.
    pub read_only: Option<Shortage>,
}

/// Too few blocks of a device are good to write to it. Blocks only ever go bad, so it stays so;
/// data stays readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "read-only: no block can be freed to write to, {bad_blocks} of {blocks} blocks are bad and {needed} good ones are \
     needed, more while many fail at once; data stays readable, copy it to another device"
)]
pub struct Shortage {
    /// Blocks retired, or failed and waiting for that, those that were bad from the factory among
    /// them.
    pub bad_blocks: u32,
    /// Blocks in the device.
    pub blocks: u32,
    /// Good blocks that the FTL needs for a disk of this size, as long as no more than two fail
    /// while one request is served.
    pub needed: u32,
}

/// Why an FTL could not do as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FtlError {
    /// The page lies outside the logical device; nothing was done.
    #[error("{lpn} with {count} page(s) lies outside the logical device of {logical_pages} pages")]
    OutOfRange {
        /// First page of the request.
        lpn: Lpn,
        /// Pages in the request.
        count: u32,
        /// Pages in the logical device.
        logical_pages: u32,
    },
    /// The FTL cannot be built so; nothing was written.
    #[error("{ftl} cannot be built on this device: {reason}")]
    Unsupported {
        /// The FTL's name.
        ftl: &'static str,
        /// What it lacks and what to change.
        reason: String,
    },
    /// No block can be freed although one is needed: too many blocks have gone bad. From then on
    /// the disk can only be read.
    #[error(transparent)]
    NoSpace(#[from] Shortage),
    /// The page's only copy became uncorrectable while it was being moved.
    #[error("{lpn} is lost: its only copy became uncorrectable; writing it again makes it readable")]
    Lost {
        /// The logical page.
        lpn: Lpn,
    },
    /// A flash-resident structure does not read as it was written.
    #[error("{structure} at {ppn} is damaged: {reason}")]
    Damaged {
        /// The structure.
        structure: &'static str,
        /// Where.
        ppn: nand::Ppn,
        /// What was found.
        reason: &'static str,
    },
    /// The placement policy has to know what the host will write, and was not told.
    #[error(
        "the placement policy decides by what the host will write, which only a simulation can tell it; choose another \
         policy for this disk"
    )]
    NoFuture,
    /// The device failed.
    #[error(transparent)]
    Nand(#[from] NandError),
}

/// A flash translation layer over a NAND device: a disk of [`Ftl::logical_pages`] pages.
///
/// # Promises
/// A read returns what the last completed write of that page wrote. A page never written, or
/// trimmed, reads as zeros ([`nand::Payload::clear`]).
///
/// # Power loss
/// What a completed write means after power loss differs between FTLs and stands in each one's row
/// of the table.
///
/// A trim that completed before a flush was issued stays once that flush has completed: the page
/// reads as zeros until it is written again, never as an older version. Before, power loss may undo
/// it: the page reads as zeros, as some version that it had, or as an error, because the block with
/// that version may have been half erased.
///
/// # Wearing out
/// When so many blocks have gone bad that a write finds no block, that write and every write and
/// trim after it fail with [`FtlError::NoSpace`], also after a mount ([`MountReport::read_only`]).
/// Every read goes on as before.
///
/// # A host that fails
/// After a program or erase failed with [`NandError::Host`], every call that may change the device
/// fails with that error until it is opened and mounted again: [`Ftl::write`], [`Ftl::trim`],
/// [`Ftl::flush`], [`Ftl::idle`] and [`Ftl::power_failing`] if there is a battery. Reads go on.
///
/// # Allocation
/// All memory is allocated when the FTL is made; none by the methods here, but for those that
/// report ([`Ftl::ram`], [`Ftl::gauges`]) or check. After a fault an FTL that is mapped by page may
/// allocate: when its collector meets a page of host data of which the spare area cannot be read,
/// and looks for its logical page in the whole table; when it makes metadata again of which a page
/// cannot be read; and when more than 64 blocks have failed and wait to be collected.
pub trait Ftl<N: Nand>: Send {
    /// Pages that the host sees.
    fn logical_pages(&self) -> u32;

    /// Reads one logical page.
    ///
    /// # Errors
    /// [`FtlError::OutOfRange`]; [`FtlError::Nand`] if the page's only copy is uncorrectable (other
    /// pages stay readable).
    fn read(&mut self, lpn: Lpn, out: &mut N::Payload) -> Result<(), FtlError>;

    /// Writes one logical page.
    ///
    /// # Errors
    /// [`FtlError::OutOfRange`]; [`FtlError::NoSpace`] if the device is worn out. The page then
    /// reads as before or as written.
    fn write(&mut self, lpn: Lpn, data: &N::Payload) -> Result<(), FtlError>;

    /// Forgets `count` logical pages from `lpn` on; they read as zeros. Power loss may undo it
    /// until [`Ftl::flush`] has completed.
    ///
    /// # Errors
    /// [`FtlError::OutOfRange`] before anything was forgotten; [`FtlError::NoSpace`] if the device
    /// is worn out, when some of the pages may be forgotten.
    fn trim(&mut self, lpn: Lpn, count: u32) -> Result<(), FtlError>;

    /// Makes everything completed before it survive power loss, trims among it. Programs nothing if
    /// that is so already.
    ///
    /// # Errors
    /// [`FtlError::NoSpace`] if no block is left to keep trims in: they may be undone then. Those
    /// of the device.
    fn flush(&mut self) -> Result<(), FtlError>;

    /// Does one unit of background work, such as collecting one block; `false` if there is none.
    ///
    /// # Errors
    /// Those of the device.
    fn idle(&mut self) -> Result<bool, FtlError>;

    /// Its banks, for who places pages and collects bank by bank; `None` if it has none, as FTLs
    /// with log blocks.
    fn banked(&mut self) -> Option<&mut dyn Banked> {
        None
    }

    /// Tells the FTL every page that the host will write from now on, for a placement policy that
    /// is an offline reference ([`crate::placement::Entry::knows_future`]). Has no other effect.
    fn foresee(&mut self, future: Future) {
        drop(future);
    }

    /// Says that these pages are about to be read or written, so that their map entries can be
    /// brought near. Has no other effect.
    fn hint(&self, lpns: &[Lpn]) {
        let _ = lpns;
    }

    /// The RAM that each structure holds.
    fn ram(&self) -> RamReport;

    /// Numbers of its own that are worth watching over a run; the same names, in the same order,
    /// every time.
    fn gauges(&self) -> Vec<Gauge> {
        Vec::new()
    }

    /// Hands `inspector` what the FTL knows of its blocks, write points, caches and runs now. Does
    /// no flash operation, changes nothing and allocates nothing.
    fn inspect(&self, inspector: &mut dyn Inspector) {
        let _ = inspector;
    }

    /// Saves to flash what only RAM holds. Called when power is about to go, also in a clean
    /// shutdown, while a battery keeps the device running, after whatever the FTL was doing has
    /// ended, if only in an error: an operation that power cut short is one that failed
    /// ([`NandError::PowerLost`]). The FTL can go on if power does not go after all.
    ///
    /// Does nothing for an FTL that needs no battery, or was made without one
    /// ([`crate::Config::battery`]).
    ///
    /// # Errors
    /// Those of the device.
    fn power_failing(&mut self) -> Result<(), FtlError> {
        Ok(())
    }

    /// Pages that [`Ftl::power_failing`] programs at most, what the battery has to last for; a page
    /// whose program fails is programmed again beyond that. 0 if no battery is needed.
    fn battery_pages(&self) -> u32 {
        0
    }

    /// Blocks that can be programmed before anything is collected or merged; 0 if the disk can only
    /// be read.
    fn free_blocks(&self) -> u32;

    /// Why the disk can only be read, if it cannot be written any more.
    fn read_only(&self) -> Option<Shortage>;

    /// The device behind its accounting layer.
    fn flash(&self) -> &Flash<N>;

    /// The device, for a harness.
    fn flash_mut(&mut self) -> &mut Flash<N>;

    /// Gives the device back, as power loss would leave it: nothing is saved.
    fn into_flash(self: Box<Self>) -> Flash<N>;

    /// Checks every invariant that ties the FTL's structures to each other and to flash. Slow: for
    /// tests.
    ///
    /// # Errors
    /// The first violation, in words.
    fn check(&mut self) -> Result<(), String>;
}
