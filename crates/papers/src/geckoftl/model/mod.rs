//! The formulas of GeckoFTL's paper (Dayan, Bonnet and Idreos, SIGMOD 2016) for a device of any
//! shape: RAM by structure, recovery by step, write-amplification by page validity.
//!
//! - Section 2: translation table, GMD, PVB, scans of the whole device.
//! - Sections 3.2 and 3.3, Table 1: levels of Logarithmic Gecko, entries on a page, cost of updates
//!   and queries.
//! - Appendix B: run directories, BVC, buffers. Appendix C: recovery. Appendix E: size of the page
//!   validity log.
//! - [`mod@ftls`]: which of these each FTL of the paper's comparison has.
//!
//! Where the paper gives a figure but no formula, the one used here is stated at its structure. A
//! running FTL holds and does more or less than this: `openftl reproduce gecko/fig13` shows both.

pub mod ftls;

pub use ftls::{MODELS, Model, SizeFormula, Step, Structure, scans, structures};

use serde::Serialize;
use sim::reference::lfs_write_amplification;

/// A device and its FTL, in the terms of the paper's Figure 2.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Device {
    /// K: blocks.
    pub blocks: u64,
    /// B: pages in a block.
    pub pages_per_block: u64,
    /// P: bytes in a page.
    pub page_bytes: u64,
    /// R: logical pages for each physical page.
    pub logical_ratio: f64,
    /// C: entries in the cache of mapping entries.
    pub cache_entries: u64,
    /// S: sub-entries of a Gecko entry.
    pub partitions: u64,
    /// T: size ratio between levels of Logarithmic Gecko.
    pub size_ratio: u64,
    /// Dirty entries for each cached one where they are capped (LazyFTL, IB-FTL).
    pub dirty_ratio: f64,
}

/// How long flash operations take, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// Read of a page.
    pub read_us: f64,
    /// Read of a spare area.
    pub spare_read_us: f64,
    /// Program of a page.
    pub write_us: f64,
}

impl Times {
    /// Section 5.3: 100 µs, 3 µs and 1 ms.
    pub const PAPER: Self = Self { read_us: 100.0, spare_read_us: 3.0, write_us: 1000.0 };

    /// δ: reads that take as long as one program.
    #[must_use]
    pub fn delta(&self) -> f64 {
        self.write_us / self.read_us
    }
}

/// Bytes of an address, a key or a counter: I_4.
const WORD: f64 = 4.0;

/// Bytes of a cached mapping entry (section 5).
pub const CACHE_ENTRY_BYTES: u64 = 8;

/// Bytes of an entry of the page validity log: address, link and timestamp, I_4 each. The paper
/// gives none.
const LOG_ENTRY: f64 = 3.0 * WORD;

/// Bits of a key of Logarithmic Gecko.
const KEY_BITS: u64 = 32;

impl Device {
    /// The 2 TiB device of the paper's Figure 2 and section 5, with S = B / 32 and T = 2.
    pub const PAPER: Self = Self {
        blocks: 1 << 22,
        pages_per_block: 1 << 7,
        page_bytes: 1 << 12,
        logical_ratio: 0.7,
        cache_entries: 1 << 19,
        partitions: 4,
        size_ratio: 2,
        dirty_ratio: 0.1,
    };

    /// S = B / key bits, the paper's choice for a block of so many pages (section 3.3); at least 1.
    #[must_use]
    pub const fn best_partitions(pages_per_block: u64) -> u64 {
        if pages_per_block <= KEY_BITS { 1 } else { pages_per_block / KEY_BITS }
    }

    /// Physical pages: K·B.
    #[must_use]
    pub fn pages(&self) -> f64 {
        self.blocks as f64 * self.pages_per_block as f64
    }

    /// Raw bytes: K·B·P.
    #[must_use]
    pub fn raw_bytes(&self) -> f64 {
        self.pages() * self.page()
    }

    const fn page(&self) -> f64 {
        self.page_bytes as f64
    }

    /// TT, bytes: 4·K·B·R (section 2).
    #[must_use]
    pub fn translation_table_bytes(&self) -> f64 {
        WORD * self.pages() * self.logical_ratio
    }

    /// Translation pages: TT / P.
    #[must_use]
    pub fn translation_pages(&self) -> u64 {
        (self.translation_table_bytes() / self.page()).ceil() as u64
    }

    /// Global mapping directory, bytes: 4·TT / P (section 2).
    #[must_use]
    pub fn gmd_bytes(&self) -> f64 {
        WORD * self.translation_table_bytes() / self.page()
    }

    /// Page validity bitmap, bytes: K·B / 8 (section 2).
    #[must_use]
    pub fn pvb_bytes(&self) -> f64 {
        self.pages() / 8.0
    }

    /// Pages of a bitmap that lies in flash.
    #[must_use]
    pub fn pvb_pages(&self) -> u64 {
        (self.pvb_bytes() / self.page()).ceil() as u64
    }

    /// Block validity counters, bytes: 2·K (Appendix B).
    #[must_use]
    pub const fn bvc_bytes(&self) -> f64 {
        2.0 * self.blocks as f64
    }

    /// Cache of mapping entries, bytes: 8·C (section 5).
    #[must_use]
    pub const fn cache_bytes(&self) -> f64 {
        (CACHE_ENTRY_BYTES * self.cache_entries) as f64
    }

    /// V: Gecko (sub-)entries on a page: P / (4 + B / 8S) (section 3.3, Appendix B).
    #[must_use]
    pub fn gecko_entries_per_page(&self) -> f64 {
        self.page() / (WORD + self.pages_per_block as f64 / (8.0 * self.partitions as f64))
    }

    /// Pages of the largest run: K·S / V.
    fn largest_run_pages(&self) -> f64 {
        self.blocks as f64 * self.partitions as f64 / self.gecko_entries_per_page()
    }

    /// Pages of Logarithmic Gecko: 2·K·S / V (Appendix B; there for S = 1).
    #[must_use]
    pub fn gecko_pages(&self) -> f64 {
        2.0 * self.largest_run_pages()
    }

    /// Run directories, bytes: two words a page of Logarithmic Gecko (Appendix B).
    #[must_use]
    pub fn run_directory_bytes(&self) -> f64 {
        2.0 * WORD * self.gecko_pages()
    }

    /// L: levels of Logarithmic Gecko: ⌈log_T(K·S / V)⌉ (section 3.2).
    #[must_use]
    pub fn gecko_levels(&self) -> u32 {
        let (mut levels, mut pages) = (0, 1.0);
        while pages < self.largest_run_pages() {
            levels += 1;
            pages *= self.size_ratio.max(2) as f64;
        }
        levels
    }

    /// Buffers of Logarithmic Gecko with multi-way merging, bytes: P·(2 + L) (Appendix B).
    #[must_use]
    pub fn gecko_buffer_bytes(&self) -> f64 {
        self.page() * (2.0 + f64::from(self.gecko_levels()))
    }

    /// D: pages that over-provisioning adds (Appendix E).
    #[must_use]
    pub fn spare_pages(&self) -> f64 {
        self.pages() * (1.0 - self.logical_ratio)
    }

    /// Pages of the page validity log: 2·D entries (Appendix E).
    #[must_use]
    pub fn log_pages(&self) -> u64 {
        (2.0 * self.spare_pages() * LOG_ENTRY / self.page()).ceil() as u64
    }

    /// Dirty entries where they are capped.
    #[must_use]
    pub fn capped_dirty_entries(&self) -> f64 {
        self.dirty_ratio * self.cache_entries as f64
    }

    /// Blocks collected for each page the host writes, if victims are as live as the cleaning
    /// equation of log-structured file systems says: write-amplification / B.
    #[must_use]
    pub fn collections_per_write(&self) -> f64 {
        lfs_write_amplification(self.logical_ratio) / self.pages_per_block as f64
    }

    /// Write-amplification by page validity with Logarithmic Gecko: Table 1's terms with 1 for the
    /// constants they leave open, (1 + 1/δ)·T·L/V an update and L/δ a query. Each host write makes
    /// one update and each collection one more. Appendix A's merging of many runs at once costs
    /// less.
    #[must_use]
    pub fn gecko_write_amplification(&self, delta: f64) -> f64 {
        let levels = f64::from(self.gecko_levels());
        let update = self.size_ratio as f64 * levels / self.gecko_entries_per_page();
        let collections = self.collections_per_write();
        (1.0 + collections) * update * (1.0 + 1.0 / delta) + collections * levels / delta
    }

    /// The same with the bitmap in flash: a read and a write an update, a read a query (Table 1).
    #[must_use]
    pub fn flash_pvb_write_amplification(&self, delta: f64) -> f64 {
        1.0 + 1.0 / delta + self.collections_per_write() / delta
    }
}

#[cfg(test)]
mod tests {
    use super::ftls::{block_scan, full_scan, pvb_rebuild, synchronisation};
    use super::*;

    const D: Device = Device::PAPER;
    const T: Times = Times::PAPER;
    const MIB: f64 = 1024.0 * 1024.0;

    fn near(value: f64, wanted: f64, digits: i32) {
        let step = 10_f64.powi(-digits);
        assert!((value - wanted).abs() <= step / 2.0 + 1e-9, "{value} is not {wanted}");
    }

    #[test]
    fn structures_are_as_large_as_the_paper_says() {
        near(D.translation_table_bytes() / MIB, 1433.6, 1);
        assert_eq!(D.translation_pages(), 367_002);
        near(D.gmd_bytes() / MIB, 1.40, 2);
        near(D.pvb_bytes() / MIB, 64.0, 3);
        near(D.bvc_bytes() / MIB, 8.0, 3);
        near(Device { partitions: 1, ..D }.run_directory_bytes() / MIB, 0.3125, 4);
        near(D.cache_bytes() / MIB, 4.0, 3);
        assert_eq!(Device::best_partitions(128), 4);
        assert_eq!(Device::best_partitions(16), 1);
    }

    #[test]
    fn recovery_steps_take_as_long_as_the_paper_says() {
        near(block_scan(&D).seconds(&T), 12.6, 1);
        near(pvb_rebuild(&D).seconds(&T), 36.7, 1);
        near(full_scan(&D).seconds(&T) / 60.0, 26.8, 1);
        near(synchronisation(&D, D.cache_entries as f64).seconds(&T) / 60.0, 6.7, 1);
    }

    #[test]
    fn gecko_recovers_in_half_the_time_of_lazy_with_a_twentieth_of_the_bitmap() {
        let seconds = |name| Model::find(name).unwrap().recovery_seconds(&D, &T);
        assert!(seconds("gecko") < 0.49 * seconds("lazy"), "{} against {}", seconds("gecko"), seconds("lazy"));
        assert!(D.run_directory_bytes() + D.gecko_buffer_bytes() < 0.05 * D.pvb_bytes());
    }

    #[test]
    fn ram_is_ordered_as_in_figure_13() {
        let ram = |name| Model::find(name).unwrap().ram_bytes(&D);
        assert!(ram("uftl") < ram("gecko") && ram("gecko") < ram("ib-ftl") && ram("ib-ftl") < ram("dftl"));
        assert!((ram("dftl") - ram("lazy")).abs() < f64::EPSILON && ram("lazy") < ram("page"));
    }

    #[test]
    fn levels_grow_with_the_logarithm_of_capacity() {
        let levels = |blocks, size_ratio| Device { blocks, size_ratio, ..D }.gecko_levels();
        assert_eq!((levels(1 << 22, 2), levels(1 << 23, 2), levels(1 << 22, 4)), (15, 16, 8));
        assert_eq!(levels(1, 2), 0);
    }

    #[test]
    fn a_bitmap_in_flash_costs_a_write_and_a_read_an_update() {
        let wa = D.flash_pvb_write_amplification(T.delta());
        assert!(wa > 1.1 && wa < 1.11, "{wa}");
        assert!(D.gecko_write_amplification(T.delta()) < 0.1 * wa);
    }
}
