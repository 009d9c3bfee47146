//! The write buffer that a command line asks for.

use crate::args::CompareArgs;
use crate::error::usage;
use crate::units::{Room, bytes, count};
use anyhow::Result;
use sim::{DevicePlan, Replacement, WriteBufferOptions};

/// Refuses options that mean nothing, or contradict each other.
pub fn check(args: &CompareArgs) -> Result<()> {
    let buffer = &args.buffer;
    let has_room = buffer.write_buffer.is_some_and(|room| !room.is_none());
    if buffer.write_buffer_policy.is_some() && !has_room {
        return Err(usage("--write-buffer-policy says what leaves a write buffer; add --write-buffer 256KiB"));
    }
    match args.tuning.placement.as_deref().and_then(ftl::placement::find) {
        Some(row) if has_room && row.knows_future => Err(usage(format!(
            "--placement {} has to know the order of all writes, which --write-buffer changes; leave one of them out",
            row.name
        ))),
        _ => Ok(()),
    }
}

/// The buffer for a device; none unless one is asked for.
///
/// # Errors
/// If it has no room for a page, or more than the disk has pages.
pub fn asked(args: &CompareArgs, plan: &DevicePlan) -> Result<Option<WriteBufferOptions>> {
    let page_bytes = u64::from(plan.geometry.page_bytes());
    let pages = match args.buffer.write_buffer {
        Some(room) if !room.is_none() => match room {
            Room::Bytes(bytes) => bytes / page_bytes,
            Room::Pages(pages) => pages,
        },
        _ => return Ok(None),
    };
    let policy = args.buffer.write_buffer_policy.map_or(Replacement::Lru, |policy| policy.replacement());
    match u32::try_from(pages) {
        Ok(0) => Err(usage(format!(
            "--write-buffer holds no page: a page of device {} is {}; give at least that, or 0 for no buffer",
            plan.name,
            bytes(page_bytes)
        ))),
        Ok(pages) if pages <= plan.logical_pages => Ok(Some(WriteBufferOptions { pages, policy })),
        _ => Err(usage(format!(
            "--write-buffer holds {} pages, more than the {} of the disk; give less than {}",
            count(pages),
            count(plan.logical_pages.into()),
            bytes(plan.logical_bytes())
        ))),
    }
}
