//! What each FTL of the paper's comparison holds in RAM and does after power loss, by the paper's
//! formulas.

use super::{Device, Times, WORD};
use serde::Serialize;

/// A structure in RAM.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Structure {
    /// The name that a running FTL reports it by, where it has one.
    pub name: &'static str,
    /// Its size in bytes.
    pub bytes: f64,
}

/// A structure with the paper's formula for its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeFormula {
    /// What it is.
    pub name: &'static str,
    /// The formula, in the terms of [`Device`].
    pub formula: &'static str,
    /// Its size in bytes.
    pub bytes: f64,
}

/// Structures of any FTL of the paper.
#[must_use]
pub fn structures(d: &Device) -> [SizeFormula; 8] {
    let sized = |name, formula, bytes| SizeFormula { name, formula, bytes };
    [
        sized("translation table", "4·K·B·R", d.translation_table_bytes()),
        sized("global mapping directory (GMD)", "4·TT / P", d.gmd_bytes()),
        sized("page validity bitmap (PVB)", "K·B / 8", d.pvb_bytes()),
        sized("block validity counters (BVC)", "2·K", d.bvc_bytes()),
        sized("cached mapping entries", "8·C", d.cache_bytes()),
        sized("run directories", "8 · 2·K·S / V", d.run_directory_bytes()),
        sized("buffers of Logarithmic Gecko", "P·(2 + L)", d.gecko_buffer_bytes()),
        sized("page validity log in flash", "2·D entries of 12 B", d.log_pages() as f64 * d.page_bytes as f64),
    ]
}

/// Scans that section 2 gives times for.
#[must_use]
pub fn scans(d: &Device) -> [(&'static str, Step); 4] {
    [
        ("one spare area a block", block_scan(d)),
        ("every spare area", full_scan(d)),
        ("every translation page, to rebuild the PVB", pvb_rebuild(d)),
        ("synchronising every cached entry", synchronisation(d, d.cache_entries as f64)),
    ]
}

/// A step of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Step {
    /// What it restores.
    pub name: &'static str,
    /// Pages read.
    pub reads: f64,
    /// Spare areas read.
    pub spare_reads: f64,
    /// Pages programmed.
    pub programs: f64,
}

impl Step {
    /// How long it takes, seconds, one operation after the other.
    #[must_use]
    pub fn seconds(&self, times: &Times) -> f64 {
        (self.reads * times.read_us + self.spare_reads * times.spare_read_us + self.programs * times.write_us) / 1e6
    }
}

/// The formulas of one FTL.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The FTL, by its name in the table of FTLs.
    pub name: &'static str,
    /// The structures that it keeps in RAM.
    pub ram: fn(&Device) -> Vec<Structure>,
    /// What it does after power loss before it serves requests.
    pub recovery: fn(&Device) -> Vec<Step>,
}

impl Model {
    /// The formulas of an FTL, if the paper gives any.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        MODELS.iter().find(|model| model.name == name)
    }

    /// Whether its recovery depends on how many entries may be dirty.
    #[must_use]
    pub fn caps_dirty_entries(&self, device: &Device) -> bool {
        let other = Device { dirty_ratio: device.dirty_ratio / 2.0, ..*device };
        (self.recovery)(device) != (self.recovery)(&other)
    }

    /// All of its RAM, bytes.
    #[must_use]
    pub fn ram_bytes(&self, device: &Device) -> f64 {
        (self.ram)(device).iter().map(|structure| structure.bytes).sum()
    }

    /// All of its recovery, seconds.
    #[must_use]
    pub fn recovery_seconds(&self, device: &Device, times: &Times) -> f64 {
        (self.recovery)(device).iter().map(|step| step.seconds(times)).sum()
    }
}

/// Every FTL of the paper's comparison, in the order of its Figure 13, after page mapping.
///
/// A battery (DFTL, uFTL) saves what is dirty in the cache, and DFTL's bitmap, before power is
/// gone. The paper counts BVC only where the bitmap is not in RAM.
pub const MODELS: [Model; 6] = [
    Model {
        name: "page",
        ram: |d| vec![table("translation_table", d.translation_table_bytes()), table("pvb", d.pvb_bytes())],
        recovery: |d| vec![full_scan(d)],
    },
    Model { name: "dftl", ram: |d| flat_ram(d).into(), recovery: |d| vec![block_scan(d), gmd(d), pvb_load(d)] },
    Model {
        name: "lazy",
        ram: |d| flat_ram(d).into(),
        recovery: |d| vec![block_scan(d), gmd(d), pvb_rebuild(d), capped_scan(d), capped_synchronisation(d)],
    },
    Model {
        name: "uftl",
        ram: |d| {
            vec![
                table("btree_root", d.page()),
                table("cmt", d.cache_bytes()),
                table("pvb_directory", WORD * d.pvb_pages() as f64),
                table("bvc", d.bvc_bytes()),
            ]
        },
        recovery: |d| {
            let directory = spare_scan("pvb_directory", d.pvb_pages() as f64);
            vec![block_scan(d), directory, page_scan("bvc", d.pvb_pages() as f64)]
        },
    },
    Model {
        name: "ib-ftl",
        ram: |d| {
            let words = WORD * d.blocks as f64;
            vec![
                table("btree_root", d.page()),
                table("cmt", d.cache_bytes()),
                table("log_heads", words),
                table("log_erase_stamps", words),
                table("log_buffers", d.page()),
                table("bvc", d.bvc_bytes()),
            ]
        },
        recovery: |d| {
            let log = page_scan("log_scan", d.log_pages() as f64);
            vec![block_scan(d), log, capped_scan(d), capped_synchronisation(d)]
        },
    },
    Model {
        name: "gecko",
        ram: |d| {
            vec![
                table("gmd", d.gmd_bytes()),
                table("cmt", d.cache_bytes()),
                table("run_directories", d.run_directory_bytes()),
                table("gecko_buffers", d.gecko_buffer_bytes()),
                table("bvc", d.bvc_bytes()),
            ]
        },
        recovery: |d| {
            vec![
                block_scan(d),
                gmd(d),
                spare_scan("run_directories", d.gecko_pages()),
                page_scan("gecko_buffer", 2.0 * d.gecko_entries_per_page()),
                page_scan("bvc", d.gecko_pages()),
                spare_scan("dirty_entries", 2.0 * d.cache_entries as f64),
            ]
        },
    },
];

const fn table(name: &'static str, bytes: f64) -> Structure {
    Structure { name, bytes }
}

const fn spare_scan(name: &'static str, spare_reads: f64) -> Step {
    Step { name, reads: 0.0, spare_reads, programs: 0.0 }
}

const fn page_scan(name: &'static str, reads: f64) -> Step {
    Step { name, reads, spare_reads: 0.0, programs: 0.0 }
}

/// RAM of an FTL with a flat translation table in flash and the bitmap in RAM.
fn flat_ram(d: &Device) -> [Structure; 3] {
    [table("gmd", d.gmd_bytes()), table("cmt", d.cache_bytes()), table("pvb", d.pvb_bytes())]
}

/// Every spare area of the device (section 2).
#[must_use]
pub fn full_scan(d: &Device) -> Step {
    spare_scan("full_spare_scan", d.pages())
}

/// One spare area a block says what the block holds (Appendix C, step 1).
pub const fn block_scan(d: &Device) -> Step {
    spare_scan("block_scan", d.blocks as f64)
}

/// One spare area a translation page (Appendix C, step 2).
#[must_use]
pub fn gmd(d: &Device) -> Step {
    spare_scan("gmd", d.translation_pages() as f64)
}

/// Reading every translation page tells which pages live (section 2).
#[must_use]
pub fn pvb_rebuild(d: &Device) -> Step {
    page_scan("pvb_rebuild", d.translation_pages() as f64)
}

/// Reading back the bitmap that a battery saved.
#[must_use]
pub fn pvb_load(d: &Device) -> Step {
    page_scan("pvb_load", d.pvb_pages() as f64)
}

/// Spare areas of the pages that dirty entries may be about, where those are capped.
#[must_use]
pub fn capped_scan(d: &Device) -> Step {
    spare_scan("dirty_entries", d.capped_dirty_entries())
}

/// Synchronising so many dirty entries: a read and a program for each, or for each translation page
/// if those are fewer (section 2: min(C, TT / P)).
#[must_use]
pub fn synchronisation(d: &Device, dirty_entries: f64) -> Step {
    let pages = dirty_entries.min(d.translation_pages() as f64);
    Step { name: "synchronisation", reads: pages, spare_reads: 0.0, programs: pages }
}

fn capped_synchronisation(d: &Device) -> Step {
    synchronisation(d, d.capped_dirty_entries())
}
