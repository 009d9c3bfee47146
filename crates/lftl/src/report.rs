//! What an engine has done: counts that are summed when somebody asks.

use crate::bank::Ops;
use crate::engine::Engine;
use crate::sync::{AtomicU64, Ordering};

/// What the engine has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Pages programmed because a host wrote them.
    pub host_programs: u64,
    /// Pages programmed because collectors moved them, late copies too.
    pub moved_pages: u64,
    /// Pages of checkpoints and trims programmed.
    pub saved_pages: u64,
    /// Blocks collected.
    pub collected_blocks: u64,
    /// All flash operations, of all banks.
    pub ops: Ops,
    /// Blocks that can be programmed before anything is collected.
    pub free_blocks: u64,
    /// RAM that the engine holds, in bytes.
    pub ram_bytes: u64,
}

impl Engine {
    /// What the engine has done, and how it stands.
    #[must_use]
    pub fn report(&self) -> Report {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut report = Report {
            saved_pages: count(&self.counters.saved),
            collected_blocks: count(&self.counters.collected),
            ram_bytes: self.ram_bytes(),
            ..Report::default()
        };
        for cell in &self.banks {
            let bank = cell.lock();
            report.host_programs += bank.host_programs;
            report.moved_pages += bank.moved_pages;
            report.ops.reads += bank.ops.reads;
            report.ops.spare_reads += bank.ops.spare_reads;
            report.ops.programs += bank.ops.programs;
            report.ops.erases += bank.ops.erases;
        }
        report.free_blocks = self.banks.iter().map(|cell| u64::from(cell.info.free.load(Ordering::Relaxed))).sum();
        report
    }

    /// The flash operations of each bank.
    #[must_use]
    pub fn bank_ops(&self) -> Vec<Ops> {
        self.banks.iter().map(|cell| cell.lock().ops).collect()
    }

    fn ram_bytes(&self) -> u64 {
        let (pages, blocks) = (u64::from(self.map.pages()), u64::from(self.shape.all_blocks()));
        let bits = blocks * u64::from(self.shape.pages_per_block.div_ceil(64)) * 8;
        let table = pages * 8 + pages.div_ceil(8);
        table + bits + blocks * 8 + u64::from(self.options.buffers) * u64::from(self.shape.page_bytes)
    }
}
