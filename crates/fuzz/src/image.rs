//! Any bytes as the file of a device's image.
//!
//! The first byte says whether the check values are put right before, so that what they guard is
//! reached; the second which FTL mounts the device; the third how large a disk it is told to find.

use crate::disk;
use crate::input::Input;
use crate::operations::mountable;
use ftl::Config;
use nand::{MemNand, Nand};

/// Bytes of the header before its check value.
const HEADER: usize = 45;

/// Larger devices are not mounted: what an FTL holds in RAM is in proportion to the pages of the
/// device.
const PAGES: u32 = 1 << 14;

/// Nor are those that hold more: what is written to them is kept in memory.
const BYTES: u64 = 1 << 26;

pub(crate) fn run(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let (flags, which, size) = (input.byte(), input.byte(), input.byte());
    let mut file = input.rest().to_vec();
    if flags & 1 == 0 {
        put_right(&mut file);
    }
    let Ok(flash) = MemNand::read_image(&mut &file[..]) else { return Ok(()) };
    let mut again = Vec::new();
    flash.write_image(&mut again).map_err(|error| error.to_string())?;
    if again.len() != file.len() {
        return Err(format!("an image of {} B is written as {} B", file.len(), again.len()));
    }
    let geometry = *flash.geometry();
    if geometry.pages() > PAGES || geometry.raw_bytes() > BYTES {
        return Ok(());
    }
    let entries = mountable();
    let Some(entry) = entries.get(usize::from(which) % entries.len()) else { return Ok(()) };
    let logical_pages = 1 + geometry.pages() * u32::from(size) / 256;
    let config = Config { cache_entries: 4, battery: flags & 2 == 0, ..Config::new(logical_pages) };
    disk::exercise(entry, &disk::device(flash), &config)
}

/// Gives header and contents the check values that they should have.
fn put_right(file: &mut [u8]) {
    for end in [HEADER, file.len().saturating_sub(8)] {
        if let Some(sum) = file.get(..end).map(fnv)
            && let Some(found) = file.get_mut(end..end + 8)
        {
            found.copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// FNV-1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
}
