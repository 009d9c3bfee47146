//! A trace made from any source, to be described, fitted or written out.

use super::builder::{Builder, Row};
use super::{OpenOptions, Trace};
use crate::error::WorkloadError;
use crate::request::{Request, Source};

/// Keeps the next `requests` requests of a source (fewer if it ends) as a trace of one device.
///
/// # Errors
/// If the source fails, or gives no request, or one larger than 2 GiB.
pub fn record(source: &mut dyn Source, requests: u64) -> Result<Trace, WorkloadError> {
    let options = OpenOptions::default();
    let mut builder = Builder::new(&options, &source.describe(), "recorded");
    builder.timed = source.timed();
    let mut batch = vec![Request::default(); 1024];
    let mut left = requests;
    while left > 0 {
        let wanted = left.min(batch.len() as u64) as usize;
        let filled = source.fill(&mut batch[..wanted])?;
        if filled == 0 {
            break;
        }
        for request in &batch[..filled] {
            let Request { at_ns, op, offset, bytes, fua } = *request;
            let row = Row { time_ns: i128::from(at_ns), device: "0".into(), op, offset, bytes, fua };
            builder.push(row).map_err(|why| WorkloadError::DoesNotFit { what: source.describe(), why })?;
        }
        left -= filled as u64;
    }
    builder.finish()
}
