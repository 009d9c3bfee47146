//! A disk for tests.

use blockdev::{Disk, DiskOptions, Keeping};
use ftl::{Config, Flash};
use nand::MemNand;
use table::AnyBytes;

/// An empty disk in memory.
pub(crate) fn disk(read_only: bool) -> Disk<AnyBytes> {
    let profile = nand::find("small").expect("a profile");
    let device = MemNand::new(profile.geometry().expect("a geometry"), profile.capabilities);
    let row = table::find::<AnyBytes>("gecko").expect("an FTL");
    let ftl = (row.format)(Flash::new(Box::new(device)), &Config::new(400)).expect("it fits");
    Disk::new(vec![ftl], row.info, DiskOptions { read_only, ..DiskOptions::new(Keeping::Nothing) }).expect("a disk")
}
