//! Syncing a device in a file while somebody else owns it.

use super::journal::Journal;
use super::medium::HostFile;
use super::{Access, EIO, FileNand};
use core::sync::atomic::{AtomicI32, Ordering};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Brings what was written to a device in a file to the disk, while somebody else owns the device.
#[derive(Clone, Debug)]
pub struct Syncer {
    /// `None` if nothing is written.
    file: Option<Arc<File>>,
    failed: Arc<AtomicI32>,
    journal: Arc<Journal<HostFile>>,
}

impl Syncer {
    /// Makes every operation that completed before survive the death of the host.
    ///
    /// # Errors
    /// Those of the host. The device then refuses programs and erases, and every later sync fails
    /// too: the host may have forgotten what it could not write.
    pub fn sync(&self) -> io::Result<()> {
        match self.failed.load(Ordering::Acquire) {
            0 => {}
            code => return Err(io::Error::from_raw_os_error(code)),
        }
        let Some(file) = &self.file else { return Ok(()) };
        // An operation that is under way may have a smaller number than one that completed.
        self.journal.settled();
        file.sync_data().inspect_err(|error| {
            self.failed.store(error.raw_os_error().unwrap_or(EIO), Ordering::Release);
        })
    }
}

impl FileNand<HostFile> {
    /// A handle that syncs the file. Syncs of a device that is not open for writing do nothing.
    #[must_use]
    pub fn syncer(&self) -> Syncer {
        let file = (self.access == Access::ReadWrite).then(|| self.medium.handle());
        Syncer { file, failed: Arc::clone(&self.failed), journal: Arc::clone(&self.journal) }
    }
}
