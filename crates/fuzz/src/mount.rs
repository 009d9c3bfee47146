//! A disk that an FTL made, changed behind its back, with check values that say that all is well.
//!
//! The first bytes choose the FTL, its device, its options and what is written; each of the rest
//! begins a change to what is on flash. The same FTL then mounts it.

use crate::disk::{self, Device};
use crate::input::Input;
use crate::operations::mountable;
use ftl::ftls::Entry;
use ftl::{Config, Flash, GeckoAsked, GeckoOptions, Maps};
use nand::{
    BlockId, Capabilities, Dimensions, Flags, Geometry, Lpn, MemNand, Nand, PageKind, Ppn, ProgramOrder, Spare,
};
use table::AnyBytes;

/// Bytes of a page.
const PAGE_BYTES: u32 = 512;

/// Blocks and pages in each, of the devices.
const DEVICES: [(u32, u32); 3] = [(24, 4), (32, 8), (44, 8)];

/// Page-validity stores; most FTLs have one of their own.
const STORES: [Option<&str>; 4] = [None, Some("flash-bitmap"), Some("log"), Some("gecko")];

/// Writes, trims and the like, before the device is changed.
const STEPS: u8 = 64;

/// A page as it is on flash.
#[derive(Clone)]
struct Page {
    meta: bool,
    spare: Spare,
    data: Vec<u8>,
}

/// Everything on flash, by page, and the blocks that are marked bad.
struct Contents {
    geometry: Geometry,
    pages: Vec<Option<Page>>,
    bad: Vec<bool>,
}

pub(crate) fn run(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let entries = mountable();
    let which = usize::from(input.byte()) % entries.len();
    let Some(((blocks, pages_per_block), entry)) = input.choose(&DEVICES).zip(entries.get(which)) else {
        return Ok(());
    };
    let geometry = Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks,
        pages_per_block,
        page_bytes: PAGE_BYTES,
        spare_bytes: 32,
    })
    .map_err(|error| error.to_string())?;
    let flags = input.byte();
    let logical_pages = 1 + geometry.pages() * u32::from(input.byte()) / 512;
    let packed = GeckoOptions { buffer_pages: 2, packed: true, filter_bytes: 64, spread_ops: 1, ..GeckoOptions::PAPER };
    let config = Config {
        cache_entries: 4,
        validity: STORES[usize::from(flags % 4)],
        gecko: if flags & 4 == 0 { GeckoAsked::NOTHING } else { packed.into() },
        battery: flags & 8 == 0,
        maps: Maps::InFlash,
        ..Config::new(logical_pages)
    };
    let free = flags & 16 != 0;
    let capabilities = Capabilities {
        program_order: if free { ProgramOrder::Free } else { ProgramOrder::Sequential },
        spare_reprograms: if free { 4 } else { 0 },
        ..Capabilities::MODERN
    };
    let device = disk::device(MemNand::new(geometry, capabilities));
    work(entry, &device, &config, &mut input);
    let mut contents = Contents::of(&device);
    while !input.is_empty() {
        contents.change(&mut input);
    }
    let flash = contents.program(capabilities);
    disk::exercise(entry, &disk::device(flash), &config)
}

/// Makes a disk and works on it; nothing is made of a device that the FTL refuses.
fn work(entry: &Entry<AnyBytes>, device: &Device, config: &Config, input: &mut Input<'_>) {
    let steps = input.byte() % STEPS;
    let Ok(mut ftl) = (entry.format)(Flash::new(Box::new(device.clone())), config) else { return };
    let pages = ftl.logical_pages();
    for step in 0..steps {
        let (kind, at) = (input.byte(), input.byte());
        let lpn = u32::from(at) % pages;
        // What cannot be done is not on flash then.
        let _ = match kind % 8 {
            0 => ftl.trim(Lpn(lpn), (pages - lpn).min(u32::from(kind >> 3) + 1)),
            1 => ftl.flush(),
            2 => ftl.idle().map(drop),
            _ => (lpn..pages.min(lpn + u32::from(kind >> 3) + 1))
                .try_for_each(|lpn| ftl.write(Lpn(lpn), &[step; PAGE_BYTES as usize])),
        };
    }
    let _ = ftl.power_failing();
}

impl Contents {
    fn of(device: &Device) -> Self {
        let geometry = *device.geometry();
        let mut device = device.get();
        let flash = device.inner_mut();
        let page = |ppn| {
            let spare = flash.read_spare(ppn).ok()??;
            let mut data = vec![0; PAGE_BYTES as usize];
            let meta = flash.read(ppn, &mut data).is_err();
            if meta {
                flash.read_meta(ppn, &mut data).ok()?;
            }
            Some(Page { meta, spare, data })
        };
        let pages = (0..geometry.pages()).map(Ppn).map(page).collect();
        let bad = (0..geometry.blocks()).map(|block| device.inner_mut().is_bad(BlockId(block))).collect();
        Self { geometry, pages, bad }
    }

    /// Does the next change.
    fn change(&mut self, input: &mut Input<'_>) {
        let kind = input.byte();
        let at = self.any(input);
        match kind % 10 {
            0 => lie(self.pages[at].as_mut(), input),
            1 => {
                let (to, byte) = (input.short() % PAGE_BYTES, input.byte());
                if let Some(page) = &mut self.pages[at] {
                    page.data[to as usize] = byte;
                }
            }
            2 => {
                let (to, word) = (4 * (u32::from(input.byte()) % (PAGE_BYTES / 4)), input.word());
                if let Some(page) = &mut self.pages[at] {
                    page.data[to as usize..to as usize + 4].copy_from_slice(&word.to_le_bytes());
                }
            }
            3 => self.pages[at] = Some(fresh(input)),
            4 => self.pages[at] = self.pages[self.any(input)].clone(),
            5 => self.pages[at] = None,
            6 => self.block(at).for_each(|ppn| self.pages[ppn] = None),
            7 => {
                let other = self.any(input);
                for (one, other) in self.block(at).zip(self.block(other)) {
                    self.pages.swap(one, other);
                }
            }
            8 => {
                let block = self.geometry.block_of(Ppn(at as u32)).index();
                self.bad[block] = !self.bad[block];
            }
            _ => {
                // The same lie for the same field of a whole block.
                let what = [input.byte(), input.byte(), input.byte()];
                self.block(at).for_each(|ppn| lie(self.pages[ppn].as_mut(), &mut Input::new(&what)));
            }
        }
    }

    /// Any page of the device.
    fn any(&self, input: &mut Input<'_>) -> usize {
        input.short() as usize % self.pages.len()
    }

    /// The pages of the block that holds a page.
    fn block(&self, page: usize) -> std::ops::Range<usize> {
        let pages = self.geometry.pages_per_block() as usize;
        let first = page / pages * pages;
        first..first + pages
    }

    fn program(self, capabilities: Capabilities) -> MemNand {
        let mut flash = MemNand::new(self.geometry, capabilities);
        for (ppn, page) in (0..).map(Ppn).zip(&self.pages) {
            let Some(page) = page else { continue };
            // The device takes every page of the right size, in this order.
            let programmed = if page.meta {
                flash.program_meta(ppn, &page.data, &page.spare)
            } else {
                flash.program(ppn, &page.data, &page.spare)
            };
            if programmed.is_ok() && !page.spare.flags.is_none() {
                let _ = flash.clear_flags(ppn, page.spare.flags);
            }
        }
        for (block, _) in (0..).map(BlockId).zip(&self.bad).filter(|(_, bad)| **bad) {
            let _ = flash.mark_bad(block);
        }
        flash
    }
}

/// A number, small or large, or near the end of its range.
fn number(input: &mut Input<'_>, bits: u32) -> u64 {
    let kind = input.byte();
    let end = 1_u64 << bits;
    match kind % 4 {
        0 => input.byte().into(),
        1 => u64::from(input.short()) % end,
        2 => u64::from(input.word()) << (bits - 32),
        _ => end - 1 - u64::from(input.byte()),
    }
}

/// Changes a field of the spare area.
fn lie(page: Option<&mut Page>, input: &mut Input<'_>) {
    let field = input.byte();
    let value = number(input, if field % 6 == 2 { 48 } else { 32 });
    let Some(Page { spare, meta, .. }) = page else { return };
    match field % 6 {
        0 => spare.kind = PageKind::ALL[value as usize % PageKind::ALL.len()],
        1 => spare.tag = value as u32,
        2 => spare.seq = value,
        3 => spare.erase_count = value as u32,
        4 => spare.erased_at = value as u32,
        _ => spare.aux = value as u32,
    }
    if field >= 128 {
        *meta = !*meta;
    }
}

/// A page that nobody wrote.
fn fresh(input: &mut Input<'_>) -> Page {
    let kind = input.choose(&PageKind::ALL).unwrap_or(PageKind::User);
    let spare = Spare {
        kind,
        tag: number(input, 32) as u32,
        seq: number(input, 48),
        erase_count: number(input, 32) as u32,
        erased_at: number(input, 32) as u32,
        aux: number(input, 32) as u32,
        flags: Flags::NONE,
    };
    let mut data = vec![input.byte(); PAGE_BYTES as usize];
    let words = usize::from(input.byte() % 16);
    for word in data.chunks_exact_mut(4).take(words) {
        word.copy_from_slice(&(number(input, 32) as u32).to_le_bytes());
    }
    Page { meta: kind != PageKind::User, spare, data }
}
