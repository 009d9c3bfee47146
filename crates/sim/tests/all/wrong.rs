//! FTLs that lie: each must be caught, and named.
#![allow(clippy::unwrap_used)]

use crate::common::{device, fixed, uniform};
use ftl::{Config, Flash, Ftl, FtlError, RamReport, Shortage};
use nand::sim::SimNand;
use nand::{Lpn, Stamp};
use openftl_sim::source::{Op, Request};
use openftl_sim::{PreconditionMode, RunSpec, SimError, WorkloadSpec, run_ftl};
use table::find;

const HONEST: u8 = 0;
const STALE: u8 = 1;
const LOSES_A_WRITE: u8 = 2;
const CONFUSES_PAGES: u8 = 3;
const KEEPS_TRIMMED: u8 = 4;
const FORGETS: u8 = 5;

/// Page mapping with one fault, in logical page 5.
struct Liar<const FAULT: u8> {
    inner: Box<dyn Ftl<SimNand>>,
    writes: u32,
    first: Option<Stamp>,
}

const VICTIM: Lpn = Lpn(5);

impl<const FAULT: u8> Ftl<SimNand> for Liar<FAULT> {
    fn logical_pages(&self) -> u32 {
        self.inner.logical_pages()
    }

    fn read(&mut self, lpn: Lpn, out: &mut Stamp) -> Result<(), FtlError> {
        self.inner.read(lpn, out)?;
        match (FAULT, lpn) {
            (STALE, VICTIM) => *out = self.first.unwrap_or(*out),
            (CONFUSES_PAGES, VICTIM) => self.inner.read(Lpn(6), out)?,
            (FORGETS, VICTIM) => *out = Stamp::UNWRITTEN,
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, lpn: Lpn, data: &Stamp) -> Result<(), FtlError> {
        if lpn == VICTIM {
            self.writes += 1;
            self.first.get_or_insert(*data);
            if FAULT == LOSES_A_WRITE && self.writes == 2 {
                return Ok(());
            }
        }
        self.inner.write(lpn, data)
    }

    fn trim(&mut self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        if FAULT == KEEPS_TRIMMED { Ok(()) } else { self.inner.trim(lpn, count) }
    }

    fn flush(&mut self) -> Result<(), FtlError> {
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

    fn flash(&self) -> &Flash<SimNand> {
        self.inner.flash()
    }

    fn flash_mut(&mut self) -> &mut Flash<SimNand> {
        self.inner.flash_mut()
    }

    fn into_flash(self: Box<Self>) -> Flash<SimNand> {
        self.inner.into_flash()
    }

    fn check(&mut self) -> Result<(), String> {
        self.inner.check()
    }
}

fn format<const FAULT: u8>(flash: Flash<SimNand>, config: &Config) -> Result<Box<dyn Ftl<SimNand>>, FtlError> {
    let inner = (find::<SimNand>("page").unwrap().format)(flash, config)?;
    Ok(Box::new(Liar::<FAULT> { inner, writes: 0, first: None }))
}

fn outcome<const FAULT: u8>(workload: WorkloadSpec, writes: u64, verify: bool) -> Result<u64, SimError> {
    let mut spec = RunSpec::new("liar", device(1, 1, 64, 0.7), workload);
    spec.precondition = PreconditionMode::Off;
    spec.writes = writes;
    spec.verify = verify;
    run_ftl::<SimNand>(&spec, format::<FAULT>, &mut |_| {}).map(|result| result.verified_pages)
}

fn page(op: Op, page: u64) -> Request {
    Request { at_ns: 0, op, offset: page * 4096, bytes: 4096, fua: false }
}

fn two_writes_and_a_read() -> WorkloadSpec {
    fixed(vec![page(Op::Write, 5), page(Op::Write, 6), page(Op::Write, 5), page(Op::Read, 5)])
}

fn write_trim_read() -> WorkloadSpec {
    fixed(vec![page(Op::Write, 5), page(Op::Trim, 5), page(Op::Read, 5)])
}

/// The expected and the found version.
fn caught(outcome: Result<u64, SimError>, when: &str) -> (u16, Stamp) {
    match outcome {
        Err(SimError::WrongData { lpn: VICTIM, expected, found, during, .. }) => {
            assert_eq!(during, when);
            (expected.version, found)
        }
        other => panic!("not caught: {other:?}"),
    }
}

#[test]
fn an_honest_one_passes() {
    assert_eq!(outcome::<HONEST>(two_writes_and_a_read(), 0, false).unwrap(), 0);
    assert_eq!(outcome::<HONEST>(two_writes_and_a_read(), 0, true).unwrap(), 5734);
    assert_eq!(outcome::<HONEST>(write_trim_read(), 0, true).unwrap(), 5734);
}

#[test]
fn the_next_read_catches_it() {
    const WHEN: &str = "the measured part";
    let old = Stamp { lpn: VICTIM, version: 1 };
    assert_eq!(caught(outcome::<STALE>(two_writes_and_a_read(), 0, false), WHEN), (2, old));
    assert_eq!(caught(outcome::<LOSES_A_WRITE>(two_writes_and_a_read(), 0, false), WHEN), (2, old));
    let neighbour = Stamp { lpn: Lpn(6), version: 1 };
    assert_eq!(caught(outcome::<CONFUSES_PAGES>(two_writes_and_a_read(), 0, false), WHEN), (2, neighbour));
    assert_eq!(caught(outcome::<FORGETS>(two_writes_and_a_read(), 0, false), WHEN), (2, Stamp::UNWRITTEN));
    assert_eq!(caught(outcome::<KEEPS_TRIMMED>(write_trim_read(), 0, false), WHEN), (0, old));
}

#[test]
fn the_final_check_catches_what_no_read_met() {
    let found = caught(outcome::<FORGETS>(uniform(0, 0), 50_000, true), "the final check").1;
    assert_eq!(found, Stamp::UNWRITTEN);
    let (expected, found) = caught(outcome::<STALE>(uniform(0, 0), 50_000, true), "the final check");
    assert!(expected > 1 && found.version == 1);
}

#[test]
fn the_message_says_what_and_where() {
    let Err(error) = outcome::<LOSES_A_WRITE>(two_writes_and_a_read(), 0, false) else { panic!("not caught") };
    assert_eq!(
        error.to_string(),
        "liar returned wrong data for Lpn 5: expected write 2 of logical page 5, found write 1 of logical page 5 \
         (the measured part)"
    );
}

#[test]
fn versions_wrap_without_becoming_unwritten() {
    let requests = (0..70_000).map(|_| page(Op::Write, 5)).chain([page(Op::Read, 5)]).collect();
    outcome::<HONEST>(fixed(requests), 0, true).unwrap();
}
