//! Flash for tests: counts, and watches that nothing dead is read.

use crate::contract::FtlError;
use crate::flash::Purpose;
use crate::validity::MetaStore;
use nand::{Flags, NandError, PageKind, Ppn, Spare};
use std::collections::HashMap;
use std::vec::Vec;

/// A page on flash.
#[derive(Clone, Debug)]
struct Page {
    spare: Spare,
    data: Vec<u8>,
    /// Not discarded.
    live: bool,
}

/// Pages by number; discarded ones stay until they are swept, as on flash.
#[derive(Clone, Debug)]
pub(in crate::validity) struct MemStore {
    pub page_bytes: usize,
    pub blocks: u32,
    pub pages_per_block: u32,
    pages: HashMap<u32, Page>,
    next_ppn: u32,
    seq: u64,
    /// Programs left before power goes, if it is to go.
    pub cut_after: Option<u32>,
    /// Whether the program that power loss meets leaves a spare area over garbage.
    pub tear: bool,
    /// Whether discarded pages are erased at once.
    pub sweep_at_once: bool,
    /// Whether dead pages may be read: only recovery may.
    pub recovering: bool,
    pub programs: u64,
    pub reads: u64,
    pub query_reads: u64,
    pub live: u32,
    /// The most pages that were live at a time.
    pub live_max: u32,
}

impl MemStore {
    pub fn new(page_bytes: usize, blocks: u32, pages_per_block: u32) -> Self {
        Self {
            page_bytes,
            blocks,
            pages_per_block,
            pages: HashMap::new(),
            next_ppn: 0,
            seq: 1,
            cut_after: None,
            tear: false,
            sweep_at_once: false,
            recovering: false,
            programs: 0,
            reads: 0,
            query_reads: 0,
            live: 0,
            live_max: 0,
        }
    }

    fn place(&mut self, tag: u32, aux: u32, data: Vec<u8>, live: bool) -> Ppn {
        let spare = Spare {
            kind: PageKind::Validity,
            tag,
            seq: self.seq,
            erase_count: 0,
            erased_at: 0,
            aux,
            flags: Flags::NONE,
        };
        let ppn = self.next_ppn;
        self.pages.insert(ppn, Page { spare, data, live });
        self.next_ppn += 1;
        self.seq += 1;
        Ppn(ppn)
    }

    /// Puts a page on flash that no store wrote.
    pub fn plant(&mut self, tag: u32, aux: u32, data: Vec<u8>) -> (Ppn, Spare) {
        let ppn = self.place(tag, aux, data, false);
        (ppn, self.spare(ppn))
    }

    /// The spare areas of all pages, in an arbitrary but fixed order.
    pub fn scan(&self) -> Vec<(Ppn, Spare)> {
        let mut all: Vec<_> = self.pages.iter().map(|(&ppn, page)| (Ppn(ppn), page.spare)).collect();
        all.sort_by_key(|(ppn, _)| ppn.0.wrapping_mul(0x9E37_79B1));
        all
    }

    /// The spare area of a page.
    pub fn spare(&self, ppn: Ppn) -> Spare {
        self.pages[&ppn.0].spare
    }

    /// Copies a page as a collector does; the old copy is then dead. A torn copy stays dead itself.
    pub fn relocate(&mut self, from: Ppn, torn: bool) -> Ppn {
        let page = self.pages[&from.0].clone();
        let mut data = page.data;
        if torn {
            data[12..].reverse();
        }
        let to = self.place(page.spare.tag, page.spare.aux, data, !torn);
        if !torn {
            self.pages.get_mut(&from.0).unwrap().live = false;
        }
        to
    }

    /// Erases everything that is dead.
    pub fn sweep(&mut self) {
        self.pages.retain(|_, page| page.live);
    }

    /// After power loss: what lives is what the recovered store says.
    pub fn set_live(&mut self, live: impl Iterator<Item = Ppn>) {
        self.pages.values_mut().for_each(|page| page.live = false);
        self.live = 0;
        for ppn in live {
            self.pages.get_mut(&ppn.0).unwrap().live = true;
            self.live += 1;
        }
        self.cut_after = None;
        self.recovering = false;
    }
}

impl MetaStore for MemStore {
    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    fn blocks(&self) -> u32 {
        self.blocks
    }

    fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    fn append(&mut self, purpose: Purpose, tag: u32, aux: u32, data: &[u8]) -> Result<Ppn, FtlError> {
        assert_eq!(purpose, Purpose::Validity);
        assert!(data.len() <= self.page_bytes);
        if self.cut_after == Some(0) {
            if self.tear {
                let mut torn = data.to_vec();
                torn[12..].reverse();
                self.place(tag, aux, torn, false);
                self.tear = false;
            }
            return Err(NandError::PowerLost.into());
        }
        self.cut_after = self.cut_after.map(|left| left - 1);
        self.programs += 1;
        self.live += 1;
        self.live_max = self.live_max.max(self.live);
        Ok(self.place(tag, aux, data.to_vec(), true))
    }

    fn fetch(&mut self, purpose: Purpose, ppn: Ppn, out: &mut [u8]) -> Result<Spare, FtlError> {
        let Some(page) = self.pages.get(&ppn.0) else { return Err(NandError::Erased { ppn }.into()) };
        assert!(page.live || self.recovering, "{ppn} is dead and must not be read");
        match purpose {
            Purpose::ValidityQuery => self.query_reads += 1,
            Purpose::Validity | Purpose::Recovery => self.reads += 1,
            other => panic!("read for {other:?}"),
        }
        out[..page.data.len()].copy_from_slice(&page.data);
        out[page.data.len()..].fill(0xFF);
        Ok(page.spare)
    }

    fn discard(&mut self, ppn: Ppn) {
        let page = self.pages.get_mut(&ppn.0).unwrap();
        assert!(page.live, "{ppn} was discarded twice");
        page.live = false;
        self.live -= 1;
        if self.sweep_at_once {
            self.pages.remove(&ppn.0);
        }
    }

    fn next_seq(&self) -> u64 {
        self.seq
    }
}
