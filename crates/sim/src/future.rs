//! What the host will write, found out before it does: for placement policies that are offline
//! references. The requests follow from the seed, so a second pass over them is the future.
//!
//! The future of each part of a run is told when that part begins. While a device is aged it
//! reaches to the last window that there may be, and to the end of a pass; in the measured part
//! beyond its end, so that the
//! last writes have a future too. A recorded trace has none after its end.

use crate::error::SimError;
use crate::host::Host;
use crate::source::{Op, Request};
use crate::spec::{RunSpec, TimingMode};
use nand::{Nand, Stamp};

/// Requests fetched at once.
pub const FETCH: usize = 1024;

/// Writes looked at beyond the end of the measured part, for each logical page.
pub const TAIL: u64 = 2;

/// Requests in a row without a write after which no more are looked at.
const WITHOUT_WRITE_MAX: u64 = 1 << 20;

/// Whether the FTL of a run places pages by their future.
///
/// # Errors
/// [`SimError::BadSpec`] in a timed run, where the order of writes depends on what each takes, and
/// behind a write buffer, which changes that order.
pub fn is_asked_for(spec: &RunSpec) -> Result<bool, SimError> {
    let Some(asked) = spec.config.placement.and_then(ftl::placement::find).filter(|row| row.knows_future) else {
        return Ok(false);
    };
    if spec.timing != TimingMode::None {
        let reason = format!(
            "`{}` has to know the order of all writes, and in a timed run that order depends on how long each takes; run \
             it without timing",
            asked.name
        );
        return Err(SimError::BadSpec { what: "placement", reason });
    }
    if spec.write_buffer.is_some() {
        let reason = format!(
            "`{}` has to know the order of all writes, and a write buffer changes it; run it without one",
            asked.name
        );
        return Err(SimError::BadSpec { what: "placement", reason });
    }
    Ok(true)
}

/// Puts the next requests into the front of a slice and says how many; it is told how many pages
/// those before wrote.
pub type Fill<'a> = dyn FnMut(&mut [Request], u64) -> Result<usize, SimError> + 'a;

/// Tells the FTL of a host the pages that the requests of `fill` write. It is called until it puts
/// none.
///
/// # Errors
/// Those of `fill`, and of requests that leave the disk.
pub fn tell<N: Nand<Payload = Stamp>>(host: &mut Host<N>, fill: &mut Fill<'_>) -> Result<(), SimError> {
    let most = u32::MAX as usize;
    let (mut requests, mut pages) = (vec![Request::default(); FETCH], Vec::new());
    let mut idle = 0;
    while pages.len() < most && idle < WITHOUT_WRITE_MAX {
        let got = fill(&mut requests, pages.len() as u64)?;
        if got == 0 {
            break;
        }
        for request in &requests[..got] {
            idle += 1;
            if request.op == Op::Write
                && let Some(span) = host.span(request)?
            {
                idle = 0;
                pages.extend(span.first..span.end);
            }
        }
    }
    host.tell(pages.into_iter());
    Ok(())
}
