//! A run, advanced by one flash operation at a time.
//!
//! An FTL serves a request in one go. Its flash operations are then shown one after the other:
//! pages change with each of them, what is in RAM once the last one was shown.

use super::pages::{Look, Pages};
use super::seen::Seen;
use anyhow::Result;
use ftl::{Op, OpKind, Purpose};
use nand::{BlockId, Geometry, Nand, PageKind, Ppn, Spare};
use sim::RunSpec;
use sim::source::{Op as Asked, Request};
use sim::steps::{Step, Stepper};
use std::collections::VecDeque;

/// Requests that are remembered.
const REMEMBERED: usize = 64;

/// A request and what it caused so far.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its number, from 1.
    pub number: u64,
    /// What was asked, in words.
    pub asked: String,
    /// The flash operations shown so far.
    pub ops: Vec<Op>,
}

/// The request that is being shown.
struct Pending {
    step: Step,
    /// What is written beside each page that it programmed, if it still was when the request ended.
    spares: Vec<Option<Spare>>,
    at: usize,
    /// Pages of the host that were programmed so far.
    written: u32,
}

/// What one move did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// A flash operation was shown.
    Op(Op),
    /// A request that needs no flash operation was done.
    Nothing,
    /// There are no more requests.
    End,
}

/// A run and what can be seen of it.
pub struct Show {
    stepper: Stepper,
    pending: Option<Pending>,
    geometry: Geometry,
    /// What the pages hold, after the last operation shown.
    pub pages: Pages,
    /// What the FTL says, after the last request of which everything was shown.
    pub seen: Seen,
    /// The requests before, the newest last.
    pub told: VecDeque<Told>,
    /// Requests begun.
    pub requests: u64,
    /// Pages that the host wrote.
    pub written: u64,
    /// Pages programmed for each purpose.
    pub programs: [u64; Purpose::ALL.len()],
    /// The block that is being collected.
    pub victim: Option<BlockId>,
    /// The operation shown last.
    pub last: Option<Op>,
    /// Blocks collected.
    pub collections: u64,
}

impl Show {
    /// Makes the device, ages it as asked, and looks at it.
    pub fn new(spec: &RunSpec) -> Result<Self> {
        let mut stepper = Stepper::new(spec, &mut |_| {})?;
        let seen = Seen::of(stepper.ftl());
        let geometry = *stepper.ftl().flash().nand().geometry();
        let logical_pages = stepper.ftl().logical_pages();
        let mut pages = Pages::new(geometry, logical_pages, |ppn| stepper.spare(ppn));
        pages.settle(&seen);
        Ok(Self {
            stepper,
            pending: None,
            geometry,
            pages,
            seen,
            told: VecDeque::new(),
            requests: 0,
            written: 0,
            programs: [0; Purpose::ALL.len()],
            victim: None,
            last: None,
            collections: 0,
        })
    }

    /// The device's shape.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Whether everything was shown that the last request did.
    pub const fn between_requests(&self) -> bool {
        self.pending.is_none()
    }

    /// Pages programmed for each page that the host wrote.
    pub fn amplification(&self) -> f64 {
        if self.written == 0 { 0.0 } else { self.programs.iter().sum::<u64>() as f64 / self.written as f64 }
    }

    /// Shows one flash operation; begins a request first if there is none.
    pub fn operation(&mut self) -> Result<Moved> {
        if self.pending.is_none() && !self.begin()? {
            return Ok(Moved::End);
        }
        let Some(pending) = &mut self.pending else { return Ok(Moved::End) };
        let Some(&op) = pending.step.ops.get(pending.at) else {
            self.finish();
            return Ok(Moved::Nothing);
        };
        self.victim = victim(&self.geometry, &pending.step.ops[pending.at..]);
        let is_host = op.kind == OpKind::Program && op.purpose == Purpose::Host;
        let host = pending.step.span.map(|span| span.first + pending.written).filter(|_| is_host);
        self.pages.apply(&op, pending.spares[pending.at], host);
        pending.written += u32::from(is_host);
        pending.at += 1;
        let ended = pending.at == pending.step.ops.len();
        self.note(op);
        if ended {
            self.finish();
        }
        Ok(Moved::Op(op))
    }

    /// Shows the rest of a request, or a whole one.
    pub fn request(&mut self) -> Result<Moved> {
        loop {
            let moved = self.operation()?;
            if moved == Moved::End || self.between_requests() {
                return Ok(moved);
            }
        }
    }

    /// Goes on until a block was collected.
    pub fn collection(&mut self) -> Result<Moved> {
        let before = self.collections;
        self.until(|show, _| show.collections > before)
    }

    /// Goes on until something is so after a move, or for 100,000 requests.
    pub fn until(&mut self, is_so: impl Fn(&Self, Moved) -> bool) -> Result<Moved> {
        let last = self.requests + 100_000;
        loop {
            let moved = self.operation()?;
            if moved == Moved::End || is_so(self, moved) || self.requests >= last {
                return Ok(moved);
            }
        }
    }

    /// Whether a page that the host wrote is dead.
    pub fn has_dead_host_page(&self) -> bool {
        (0..self.geometry.pages()).any(|ppn| self.pages.look(Ppn(ppn)) == Look::Dead(PageKind::User))
    }

    fn begin(&mut self) -> Result<bool> {
        let Some(step) = self.stepper.step()? else { return Ok(false) };
        let mut spare = |op: &Op| match op.kind {
            OpKind::Program => self.stepper.spare(op.page),
            _ => None,
        };
        let spares = step.ops.iter().map(&mut spare).collect();
        self.requests += 1;
        self.told.push_back(Told { number: self.requests, asked: asked(&step), ops: Vec::new() });
        if self.told.len() > REMEMBERED {
            self.told.pop_front();
        }
        if let (Asked::Trim, Some(span)) = (step.request.op, step.span) {
            let (first, count) = span.whole();
            self.pages.trim(first, count);
        }
        self.pending = Some(Pending { step, spares, at: 0, written: 0 });
        Ok(true)
    }

    fn note(&mut self, op: Op) {
        if let Some(told) = self.told.back_mut() {
            told.ops.push(op);
        }
        match op.kind {
            OpKind::Program | OpKind::Copy => self.programs[op.purpose as usize] += 1,
            OpKind::Erase => self.collections += 1,
            _ => {}
        }
        self.last = Some(op);
    }

    /// The last operation of a request was shown.
    fn finish(&mut self) {
        let changed = self.pending.take().is_some_and(|pending| {
            let is_plain = |op: &Op| op.purpose == Purpose::Host;
            !pending.step.ops.iter().all(is_plain)
        });
        self.victim = None;
        self.written = self.stepper.tally().writes;
        self.seen = Seen::of(self.stepper.ftl());
        if changed {
            self.pages.settle(&self.seen);
        }
    }
}

/// The block that is emptied by the first of these operations: the next that is erased, if what
/// comes before the erase is done for collection.
fn victim(geometry: &Geometry, ops: &[Op]) -> Option<BlockId> {
    let collects = |op: &Op| {
        use Purpose::{Gc, Refresh, TranslationGc, ValidityGc, ValidityQuery, Wear};
        matches!(op.purpose, Gc | TranslationGc | ValidityGc | ValidityQuery | Wear | Refresh)
    };
    let first = ops.first().filter(|op| collects(op))?;
    if first.kind == OpKind::Erase {
        return Some(geometry.block_of(first.page));
    }
    let erase = ops.iter().find(|op| op.kind == OpKind::Erase)?;
    Some(geometry.block_of(erase.page))
}

/// A request in words.
fn asked(step: &Step) -> String {
    let Request { op, .. } = step.request;
    match step.span {
        None => op.name().to_owned(),
        Some(span) if span.end - span.first <= 1 => format!("{} {}", op.name(), span.first),
        Some(span) => format!("{} {}-{}", op.name(), span.first, span.end - 1),
    }
}
