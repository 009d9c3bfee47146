//! Mounting whatever is on a device, and using what comes of it.

use crash::Shared;
use ftl::ftls::Entry;
use ftl::{Config, Flash, FtlError};
use nand::{Cut, CutOutcome, FaultPlan, Faulty, Lpn, MemNand};
use table::AnyBytes;

/// A device that keeps every byte, and gives up power when something does not end.
pub(crate) type Device = Shared<Faulty<MemNand>>;

/// Operations, reads included, that a mount, or one use of a disk, may do.
const LIMIT: u64 = 400_000;

/// Logical pages that are used, of larger disks.
const USED: u32 = 256;

/// Mounts the device and uses the disk: reads, writes and trims, checks itself, and is mounted
/// again. Errors are as good as success, but for work that does not end.
pub(crate) fn exercise(entry: &Entry<AnyBytes>, device: &Device, config: &Config) -> Result<(), String> {
    let Some(mount) = entry.mount else { return Ok(()) };
    for round in ["mounting", "mounting again"] {
        allow(device);
        let mounted = mount(Flash::new(Box::new(device.clone())), config);
        ended(entry, device, round)?;
        let Ok((mut ftl, _)) = mounted else { return Ok(()) };
        let used = ftl.logical_pages().min(USED);
        let mut page = vec![0; nand::Nand::geometry(device).page_bytes() as usize];
        for lpn in (0..used).map(Lpn) {
            done(entry, device, "reading", || ftl.read(lpn, &mut page))?;
        }
        page.fill(1);
        for lpn in (0..used).rev().map(Lpn) {
            done(entry, device, "writing", || ftl.write(lpn, &page))?;
        }
        done(entry, device, "idling", || ftl.idle().map(drop))?;
        done(entry, device, "trimming", || ftl.trim(Lpn(used / 2), used - used / 2))?;
        for lpn in (0..used).step_by(3).map(Lpn) {
            done(entry, device, "writing", || ftl.write(lpn, &page))?;
        }
        done(entry, device, "flushing", || ftl.flush())?;
        done(entry, device, "checking", || {
            // What it says is not held against an FTL whose device contradicts itself.
            let _ = ftl.check();
            Ok(())
        })?;
        done(entry, device, "saving", || ftl.power_failing())?;
    }
    Ok(())
}

/// Does something, and sees that it ends; its error does not matter.
fn done(
    entry: &Entry<AnyBytes>,
    device: &Device,
    what: &str,
    act: impl FnOnce() -> Result<(), FtlError>,
) -> Result<(), String> {
    allow(device);
    let _ = act();
    ended(entry, device, what)
}

/// Allows so many operations from here on.
fn allow(device: &Device) {
    let mut device = device.get();
    let at = device.ops() + LIMIT;
    device.plan_mut().cuts = vec![Cut { at, outcome: CutOutcome::NotDone }];
}

fn ended(entry: &Entry<AnyBytes>, device: &Device, what: &str) -> Result<(), String> {
    if device.get().is_powered() {
        return Ok(());
    }
    Err(format!("{}: {what} does not end: more than {LIMIT} operations", entry.info.name))
}

/// A device that is used and cut off as [`exercise`] wants it.
pub(crate) fn device(flash: MemNand) -> Device {
    Shared::new(Faulty::new(flash, FaultPlan { count_reads: true, ..FaultPlan::default() }))
}
