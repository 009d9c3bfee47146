//! Cases made of bytes, for a fuzzer that learns from coverage which bytes lead somewhere new.
//!
//! Any bytes are a case. The first say which FTL on which shape of device, with which faults, and
//! where power is cut; each of the rest, alone or with the next, is a step. Missing bytes are
//! zeros, so that every prefix is a case too.

use crate::case::{Case, Loss, Scenario, Work, checksum};
use crate::explorer::MAX_DEPTH;
use crate::faults::Fault;
use crate::report::Failure;
use crate::run::failure;
use crate::shape::SHAPES;
use crate::shrink;
use crate::workload::Step;
use ftl::ftls::Entry;
use nand::{Cut, CutOutcome};
use std::cell::OnceCell;
use table::AnyBytes;

/// Steps of a case made of bytes.
const STEPS: usize = 64;

/// Steps done after a recovery, less one.
const TAIL: u8 = 24;

/// Cases made of bytes, over a table of FTLs.
pub struct Operations {
    rows: Vec<Row>,
}

struct Row {
    entry: Entry<AnyBytes>,
    /// Rows of [`SHAPES`] and the largest disk on each.
    fits: OnceCell<Vec<(u8, u32)>>,
}

impl Operations {
    /// Cases over these FTLs; those that cannot be mounted are left out.
    #[must_use]
    pub fn new(entries: impl IntoIterator<Item = Entry<AnyBytes>>) -> Self {
        let mountable = entries.into_iter().filter(|entry| entry.mount.is_some());
        Self { rows: mountable.map(|entry| Row { entry, fits: OnceCell::new() }).collect() }
    }

    /// Runs the case that these bytes stand for: its workload, its cuts, each followed by a
    /// recovery, all checked against the model.
    ///
    /// # Errors
    /// The broken promise, shrunk; [`Failure::id`] replays it.
    pub fn run(&self, bytes: &[u8]) -> Result<(), Box<Failure>> {
        let Some((row, case)) = self.case(bytes) else { return Ok(()) };
        let Err(finding) = shrink::replay(&row.entry, &case) else { return Ok(()) };
        let (case, finding) = shrink::shrink(&row.entry, case, finding);
        Err(Box::new(failure(&case, &finding)))
    }

    /// The id of the case that these bytes stand for; `None` if no FTL fits a device.
    #[must_use]
    pub fn id(&self, bytes: &[u8]) -> Option<String> {
        self.case(bytes).map(|(_, case)| case.id())
    }

    fn case(&self, bytes: &[u8]) -> Option<(&Row, Case)> {
        let mut input = Input(bytes);
        let row = input.choose(&self.rows)?;
        let fits = row.fits.get_or_init(|| {
            let pages = |shape: usize| SHAPES[shape].logical_pages(&row.entry).ok();
            (0..SHAPES.len()).filter_map(|shape| Some((shape as u8, pages(shape)?))).collect()
        });
        let &(shape, most) = input.choose(fits)?;
        // Zero is the largest disk, which leaves a collector the least room.
        let logical_pages = (most - most * u32::from(input.byte()) / 256).max(1);
        let flags = input.byte();
        // One kind at most, as no disk leaves room for the blocks that all of them take. Half of
        // the values are none.
        let laid: Vec<u16> = Fault::ALL.iter().filter(|fault| fault.is_laid()).map(|fault| fault.bit()).collect();
        let faults = SHAPES[usize::from(shape)].bears(laid.get(usize::from(flags % 16)).copied().unwrap_or(0));
        let fading = if flags & 0x40 == 0 { 0 } else { Fault::Fading.bit() };
        let outcomes: &[CutOutcome] = if fading == 0 { &CutOutcome::PLAIN } else { &CutOutcome::ALL };
        let cuts = usize::from(input.byte()) % (MAX_DEPTH + 1);
        let mut case = Case {
            ftl: row.entry.info.name.into(),
            shape,
            logical_pages,
            seed: input.byte().into(),
            faults: faults | fading,
            battery: flags & 0x80 == 0,
            classic: false,
            scenario: Scenario::Cuts,
            work: Work::Given(Vec::new()),
            tail: u32::from(input.byte() % TAIL) + 1,
            path: (0..cuts).map(|_| input.loss(outcomes)).collect(),
        };
        case.work = Work::Given(input.steps());
        Some((row, case))
    }
}

/// Bytes being read; zeros follow the last.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn choose<'a, T>(&mut self, among: &'a [T]) -> Option<&'a T> {
        let at = usize::from(self.byte()).checked_rem(among.len())?;
        among.get(at)
    }

    fn loss(&mut self, outcomes: &[CutOutcome]) -> Loss {
        let at = u64::from(self.byte()) | u64::from(self.byte() % 4) << 8;
        let outcome = self.choose(outcomes).copied().unwrap_or(CutOutcome::NotDone);
        Loss::from(Cut { at, outcome })
    }

    /// The steps that the rest of the bytes stand for.
    fn steps(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        while !self.0.is_empty() && steps.len() < STEPS {
            let kind = self.byte();
            let count = u32::from(kind >> 4) + 1;
            steps.push(match kind % 16 {
                0..=3 => Step::Write { lpn: self.byte().into(), count: 1 },
                // A disk can have more pages than a byte has values.
                4 => Step::Write { lpn: 16 * u32::from(self.byte()) + count, count: 1 },
                5..=7 => Step::Write { lpn: self.byte().into(), count },
                8 => Step::Write { lpn: self.byte().into(), count: 8 * count },
                9 => Step::Trim { lpn: self.byte().into(), count },
                10 => Step::Trim { lpn: self.byte().into(), count: 16 * count },
                11 => Step::Read { lpn: self.byte().into() },
                12 | 13 => Step::Idle,
                _ => Step::Flush,
            });
        }
        steps
    }
}

/// The id with this name and these bytes behind it, the check byte put right, so that what the
/// bytes say is looked at.
#[must_use]
pub fn make_id(ftl: &str, bytes: &[u8]) -> String {
    let hex = |byte: &u8| format!("{byte:02x}");
    let check = checksum(bytes);
    format!("{ftl}-{}{}", bytes.iter().map(hex).collect::<String>(), hex(&check))
}

/// Reads an id that anyone may have typed: if it can be read, its case has an id that stands for
/// the same case.
///
/// # Errors
/// The id, if that is not so.
pub fn check_id(id: &str) -> Result<(), String> {
    let Ok(case) = Case::parse(id) else { return Ok(()) };
    let printed = case.id();
    match Case::parse(&printed) {
        Ok(again) if again == case => Ok(()),
        Ok(_) => Err(format!("{id} is printed as {printed}, which is another case")),
        Err(error) => Err(format!("{id} is printed as {printed}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_is_a_case_whose_id_replays_as_it_goes() {
        let operations = Operations::new(table::table());
        let bytes = [3, 1, 200, 0, 2, 9, 5, 20, 0, 2, 3, 0, 5, 0, 7, 0x18, 3, 14, 0, 7, 0x29, 1, 12, 0, 9, 11, 7];
        for end in 0..=bytes.len() {
            let id = operations.id(&bytes[..end]).unwrap();
            assert_eq!(crate::replay(&id).unwrap(), None);
            assert_eq!(operations.run(&bytes[..end]), Ok(()));
        }
        let (_, case) = operations.case(&bytes).unwrap();
        assert_eq!(case.path.len(), 2);
        assert_eq!(
            case.steps()[..3],
            [Step::Write { lpn: 7, count: 1 }, Step::Write { lpn: 3, count: 16 }, Step::Flush,]
        );
    }

    #[test]
    fn cases_with_fading_pages_have_every_outcome() {
        let operations = Operations::new(table::table());
        let outcomes = |flags: u8| {
            let cases = (0..=u8::MAX).map(|outcome| [0, 0, 0, flags, 1, 0, 0, 9, 0, outcome]);
            cases
                .filter(|bytes| {
                    let (_, case) = operations.case(bytes).unwrap();
                    assert_eq!(case.is_harsh(), flags != 0);
                    !CutOutcome::PLAIN.contains(&case.path[0].cut.outcome)
                })
                .count()
        };
        assert_eq!(outcomes(0), 0);
        assert!(outcomes(0x40) > 100);
    }

    #[test]
    fn a_device_without_spare_blocks_keeps_all_that_it_has() {
        let operations = Operations::new(table::table());
        let spareless = SHAPES.iter().position(|shape| shape.spare_blocks == 0).unwrap();
        let cases = (0..=u8::MAX).flat_map(|shape| (0..16).map(move |flags| [0, shape, 0, flags]));
        let faults: Vec<u16> = cases
            .filter_map(|bytes| operations.case(&bytes))
            .filter(|(_, case)| usize::from(case.shape) == spareless)
            .map(|(_, case)| case.faults)
            .collect();
        assert!(faults.iter().any(|&faults| faults != 0));
        assert!(faults.iter().all(|faults| faults & Fault::OF_BLOCKS == 0));
    }

    #[test]
    fn no_mountable_ftl_is_no_case() {
        assert_eq!(Operations::new([]).id(&[1, 2, 3]), None);
    }
}
