//! A case to look at: some work, one cut in the middle of it, a mount.

use crate::case::{Case, ReplayError, Scenario, Work};
use crate::shape::{SHAPES, find};
use crate::shrink;
use crate::story::Event;
use nand::{Cut, CutOutcome};

/// Steps of the workload, and those after the mount.
const STEPS: u32 = 60;
const TAIL: u32 = 6;

/// The id of a case in which a program of this FTL is torn while a generated workload runs.
///
/// # Errors
/// [`ReplayError::Ftl`] if there is no such FTL, it cannot be mounted, or no device fits it.
pub fn example(ftl: &str, seed: u64) -> Result<String, ReplayError> {
    let none = || ReplayError::Ftl { ftl: ftl.to_owned() };
    let entries = table::table();
    let entry = entries.iter().find(|entry| entry.info.name == ftl && entry.mount.is_some()).ok_or_else(none)?;
    let preferred = find("runs").into_iter();
    let mut shapes = preferred.chain(SHAPES.iter().enumerate());
    let fits = shapes.find_map(|(row, shape)| Some((row as u8, shape.logical_pages(entry).ok()?)));
    let (shape, logical_pages) = fits.ok_or_else(none)?;
    let uncut = Case {
        ftl: ftl.to_owned(),
        shape,
        logical_pages,
        seed,
        faults: 0,
        battery: true,
        classic: false,
        scenario: Scenario::Cuts,
        work: Work::Generated(STEPS),
        tail: TAIL,
        path: Vec::new(),
    };
    let (events, _) = shrink::trace(entry, &uncut);
    let ends: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            Event::Call { next_operation, .. } => Some(*next_operation),
            _ => None,
        })
        .collect();
    let later = ends.iter().skip(ends.len() / 2).map(|end| end.saturating_sub(1));
    let mut torn = later.map(|at| Case { path: vec![Cut { at, outcome: CutOutcome::Torn }.into()], ..uncut.clone() });
    let has_mount = |case: &Case| {
        let (events, _) = shrink::trace(entry, case);
        events.iter().any(|event| matches!(event, Event::Mount { .. }))
    };
    torn.find(has_mount).map(|case| case.id()).ok_or_else(none)
}
