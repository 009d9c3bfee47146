//! What a write buffer did, in sentences.

use crate::units::{bytes, count};
use sim::RunResult;
use sim::result::WriteBufferResult;

/// What the write buffers of the runs did; nothing if there was none. They see the same requests,
/// so that all mostly did the same.
pub fn lines(results: &[RunResult]) -> Vec<String> {
    let mut groups: Vec<(Vec<&str>, &RunResult, &WriteBufferResult)> = Vec::new();
    for result in results {
        let Some(buffer) = &result.write_buffer else { continue };
        let same = |(_, of, other): &&mut (_, &RunResult, _)| of.host == result.host && *other == buffer;
        match groups.iter_mut().find(same) {
            Some((ftls, ..)) => ftls.push(&result.ftl),
            None => groups.push((vec![&result.ftl], result, buffer)),
        }
    }
    let one = groups.len() == 1;
    groups.iter().flat_map(|(ftls, result, buffer)| of(if one { None } else { Some(ftls) }, result, buffer)).collect()
}

fn of(ftls: Option<&Vec<&str>>, result: &RunResult, buffer: &WriteBufferResult) -> Vec<String> {
    let before = ftls.map_or_else(String::new, |ftls| format!("before {}: ", ftls.join(", ")));
    let room = u64::from(buffer.pages) * u64::from(result.geometry.page_bytes);
    let mut lines = vec![format!(
        "{before}of {} pages that the host wrote, the FTL was given {}; {} were held already ({} written into them), and {} \
         were trimmed while held",
        count(result.host.writes),
        count(buffer.programmed),
        count(buffer.write_hits),
        bytes(buffer.coalesced_bytes),
        count(buffer.trimmed)
    )];
    lines.push(format!(
        "{before}{} left for room ({}), {} by flushes and {} at the end; {} were read first, because a part of them was on \
         flash alone",
        count(buffer.evicted),
        buffer.policy,
        count(buffer.flushed),
        count(buffer.at_end),
        count(buffer.completing_reads)
    ));
    if result.host.reads > 0 {
        lines.push(format!(
            "{before}of {} pages read it held {} wholly and {} in part",
            count(result.host.reads),
            count(buffer.read_hits),
            count(buffer.read_hits_in_part)
        ));
    }
    lines.push(format!(
        "{before}write-amplification counts every program, for each page that the host wrote; {} ({} pages) are in RAM, \
         and lost with power unless flushed",
        bytes(room),
        count(buffer.pages.into())
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn buffered(ftl: &str, evicted: u64) -> RunResult {
        let mut result = samples::run(ftl, 0.5, 0.0, 100, false);
        let (policy, pages) = ("lru".to_owned(), 64);
        result.write_buffer = Some(WriteBufferResult {
            policy,
            pages,
            sector_bytes: 512,
            write_hits: 399_000,
            coalesced_bytes: 399_000 * 512,
            trimmed: 1000,
            evicted,
            flushed: 70_000,
            at_end: 64,
            programmed: evicted + 70_064,
            completing_reads: 5000,
            ..WriteBufferResult::default()
        });
        result
    }

    #[test]
    fn buffers_that_did_the_same_are_described_once() {
        assert!(lines(&[samples::run("page", 0.5, 0.0, 100, false)]).is_empty());
        let once = lines(&[buffered("page", 529_936), buffered("dftl", 529_936)]);
        assert_eq!(
            once,
            [
                "of 1 000 000 pages that the host wrote, the FTL was given 600 000; 399 000 were held already (195 MiB \
                 written into them), and 1 000 were trimmed while held",
                "529 936 left for room (lru), 70 000 by flushes and 64 at the end; 5 000 were read first, because a part of \
                 them was on flash alone",
                "write-amplification counts every program, for each page that the host wrote; 256 KiB (64 pages) are in RAM, \
                 and lost with power unless flushed",
            ]
        );
        let both = lines(&[buffered("page", 529_936), buffered("dftl", 1)]);
        assert_eq!(both.len(), 6);
        assert!(both[0].starts_with("before page: of 1 000 000") && both[3].starts_with("before dftl: of"), "{both:?}");
    }
}
