//! Numbers that follow from geometry and options: entry size, V, levels, and the bounds that the
//! engine relies on.

use super::format::{self, HEADER_BYTES, INDEX_END, PAGE_BYTES_MAX, RUN_NUMBER_BYTES, SUMMARY_BYTES, WORD_BYTES};
use super::packed::Packing;
use crate::config::GeckoOptions;
use crate::contract::FtlError;
use alloc::format;
use alloc::string::{String, ToString};
use nand::{BlockId, Ppn};

/// The largest T that the format takes.
const SIZE_RATIO_MAX: u32 = (1 << 15) - 1;

/// The largest buffer: 64 MiB of pages of 4 KiB.
const BUFFER_PAGES_MAX: u32 = 1 << 14;

/// Bytes of a page for each run that may wait while a merge is spread.
const BYTES_A_WAITING_RUN: usize = 64;

/// Bytes that buffers have beyond what they use.
pub(super) const SLACK_BYTES: usize = 8;

/// What is fixed when the store is made.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Bytes of the device's pages.
    pub device_page_bytes: usize,
    /// Bytes of a page that are used.
    pub page_bytes: usize,
    pub pages_per_block: u32,
    /// Pages of a block in one sub-entry.
    pub chunk: u32,
    /// S: sub-entries of a block.
    pub partitions: u32,
    /// Bits of a sub-entry number that name the part.
    pub part_bits: u32,
    pub bitmap_bytes: usize,
    /// 64-bit words that hold a bitmap while it is worked on.
    pub bitmap_words: usize,
    /// The bits of the last of them that are bitmap.
    pub last_word_mask: u64,
    pub entry_bytes: usize,
    /// How entries are packed, if they are.
    pub packing: Option<Packing>,
    /// Entries that fit a page, at least so many if they are packed.
    pub page_entries: u32,
    /// V: entries in the buffer; with a buffer of one page, a run of so many fits one page with its
    /// postamble.
    pub buffer_entries: u32,
    /// Pages with entries that a buffer fills at most.
    pub buffer_pages: u32,
    /// T.
    pub size_ratio: u32,
    pub multi_way: bool,
    /// N: the most pages with entries in a run, one that has every sub-entry of the device.
    pub full_run_pages: u32,
    /// How many times the buffer's pages, unpacked, hold every sub-entry of the device.
    full_run_buffers: u32,
    /// Levels that runs can be in.
    pub levels: u32,
    /// Pages that a merge reads and programs for each new entry of the buffer; 0 if it is done at
    /// once.
    pub spread_ops: u32,
    /// Runs that may wait while a merge is spread.
    waiting: u32,
    /// Whether every run, with its postamble, fits one page.
    run_fits_a_page: bool,
    /// log2 of `chunk`, if that and the pages in a block are powers of two.
    chunk_shift: Option<u32>,
}

impl Shape {
    /// Works out the numbers.
    ///
    /// # Errors
    /// [`FtlError::Unsupported`].
    pub fn new(
        device_page_bytes: usize,
        blocks: u32,
        pages_per_block: u32,
        options: &GeckoOptions,
    ) -> Result<Self, FtlError> {
        check_options(options)?;
        if blocks == 0 || pages_per_block == 0 {
            return Err(unsupported("it has no pages".to_string()));
        }
        let wanted = if options.partitions == 0 { pages_per_block / 32 } else { options.partitions };
        let chunk = pages_per_block.div_ceil(wanted.clamp(1, pages_per_block));
        let partitions = pages_per_block.div_ceil(chunk);
        let part_bits = partitions.next_power_of_two().trailing_zeros();
        if u64::from(blocks) << part_bits >= 1 << 31 {
            return Err(unsupported(format!("{blocks} blocks in {partitions} parts need keys of more than 32 bits")));
        }
        let bitmap_bytes = chunk.div_ceil(8) as usize;
        let entry_bytes = WORD_BYTES + bitmap_bytes;
        let page_bytes = device_page_bytes.min(PAGE_BYTES_MAX);
        let packing = options.packed.then(|| Packing::new(chunk));
        let far_bytes = if options.packed { far_bytes(u64::from(blocks) << part_bits) } else { 0 };
        let body = page_bytes.saturating_sub(HEADER_BYTES);
        let page_entries = (body.saturating_sub(far_bytes) / entry_bytes) as u32;
        let all_entries = blocks * partitions;
        let mut shape = Self {
            device_page_bytes,
            page_bytes,
            pages_per_block,
            chunk,
            partitions,
            part_bits,
            bitmap_bytes,
            bitmap_words: bitmap_bytes.div_ceil(8),
            last_word_mask: u64::MAX >> (bitmap_bytes.wrapping_neg() % 8 * 8),
            entry_bytes,
            packing,
            page_entries,
            buffer_entries: 0,
            buffer_pages: options.buffer_pages,
            size_ratio: options.size_ratio.min(SIZE_RATIO_MAX),
            multi_way: options.multi_way,
            full_run_pages: all_entries.div_ceil(page_entries.max(1)),
            full_run_buffers: all_entries.div_ceil(page_entries.saturating_mul(options.buffer_pages).max(1)),
            levels: 0,
            spread_ops: options.spread_ops,
            waiting: 0,
            run_fits_a_page: false,
            chunk_shift: (chunk.is_power_of_two() && pages_per_block.is_power_of_two()).then(|| chunk.trailing_zeros()),
        };
        shape.levels = shape.full_run_pages.max(1).ilog(shape.size_ratio) + 1;
        if shape.spread_ops > 0 {
            shape.waiting = ((page_bytes / BYTES_A_WAITING_RUN) as u32).max(1);
            shape.fill(far_bytes, all_entries);
            shape.spread();
        }
        shape.fill(far_bytes, all_entries);
        if shape.buffer_entries == 0 {
            let least = HEADER_BYTES + shape.postamble_bytes(1) + far_bytes + entry_bytes;
            return Err(unsupported(format!("pages of {page_bytes} bytes are too short; it needs {least}")));
        }
        if shape.full_run_pages + shape.tail_pages(shape.full_run_pages) >= INDEX_END {
            return Err(unsupported(format!("a run would have more than {INDEX_END} pages; choose fewer partitions")));
        }
        debug_assert!(shape.partitions * shape.chunk >= pages_per_block && shape.partitions <= 1 << shape.part_bits);
        debug_assert!(shape.last_word_mask != 0 && shape.buffer_entries <= all_entries);
        Ok(shape)
    }

    /// Works out V for a device of so many sub-entries, of which some of a page can be longer than
    /// the others by so many bytes in all.
    fn fill(&mut self, far_bytes: usize, all_entries: u32) {
        let overhead = HEADER_BYTES + self.postamble_bytes(1) + far_bytes;
        let page_run_entries = (self.page_bytes.saturating_sub(overhead) / self.entry_bytes) as u32;
        self.buffer_entries = match self.buffer_pages {
            1 => page_run_entries.min(all_entries),
            pages => self.page_entries.saturating_mul(pages).min(all_entries),
        };
        self.run_fits_a_page = all_entries <= page_run_entries;
    }

    /// Works out how many runs may wait: as many as are flushed during a merge of everything. Where
    /// that would be more than the most, merges do more for each report.
    fn spread(&mut self) {
        let most = self.waiting;
        let merge = 3 * self.full_run_pages + self.runs_max() as u32 * self.buffer_pages + self.aside_pages();
        // A flush may come when the buffer has no room for another block.
        let paid = self.buffer_entries.saturating_sub(self.partitions).max(1);
        self.spread_ops = self.spread_ops.max(merge.div_ceil(paid.saturating_mul(most)));
        self.waiting = merge.div_ceil(paid.saturating_mul(self.spread_ops)).min(most) + 1;
    }

    /// The sub-entry number and the bit in it of a page.
    #[inline]
    pub fn locate(&self, ppn: Ppn) -> (u32, u32) {
        if let Some(shift) = self.chunk_shift {
            return (ppn.0 >> shift, ppn.0 & (self.chunk - 1));
        }
        let (block, offset) = (ppn.0 / self.pages_per_block, ppn.0 % self.pages_per_block);
        debug_assert!(offset / self.chunk < self.partitions);
        ((block << self.part_bits) + offset / self.chunk, offset % self.chunk)
    }

    /// One word of the bitmap that begins at `at`. Buffers have `SLACK_BYTES` more than they use,
    /// so that the last word can be read, and written, whole.
    #[inline]
    pub fn bitmap_word(&self, bytes: &[u8], at: usize, word: usize) -> u64 {
        let at = at + 8 * word;
        let (words, _) = bytes[at..at + SLACK_BYTES].as_chunks::<8>();
        let value = u64::from_le_bytes(words[0]);
        if word + 1 == self.bitmap_words { value & self.last_word_mask } else { value }
    }

    /// Adds the bitmap that begins at `at` to `dead`, whose words are 64 pages of the block of
    /// which it is this part.
    pub fn add_bitmap(&self, dead: &mut [u64], part: u32, bytes: &[u8], at: usize) {
        for word in 0..self.bitmap_words {
            add_word(dead, (part * self.chunk) as usize + 64 * word, self.bitmap_word(bytes, at, word));
        }
    }

    /// The sub-entry number of a block's part 0.
    #[inline]
    pub fn first_id(&self, block: BlockId) -> u32 {
        block.0 << self.part_bits
    }

    /// The sub-entry number of a block's last part.
    #[inline]
    pub fn last_id(&self, block: BlockId) -> u32 {
        self.first_id(block) + self.partitions - 1
    }

    /// The level of a run of so many entries: i holds T^i to T^(i+1) - 1 times what fits the pages
    /// of a buffer (section 3).
    pub fn level_of(&self, entries: u64) -> u32 {
        let buffer = u64::from(self.page_entries) * u64::from(self.buffer_pages);
        let buffers = entries.div_ceil(buffer).clamp(1, u64::from(self.full_run_buffers.max(1)));
        debug_assert!(buffers.ilog(u64::from(self.size_ratio)) <= self.levels);
        buffers.ilog(u64::from(self.size_ratio))
    }

    /// Where the entries of a page end.
    pub fn entries_end(&self, page: &[u8]) -> usize {
        let count = format::count(page);
        self.packing.map_or(HEADER_BYTES + count as usize * self.entry_bytes, |packing| packing.end(page, count))
    }

    /// The most runs that live at a time: one in each level with a buffer of one page, one more
    /// where a two-way cascade was cut short, and those that wait for a merge that is spread.
    pub const fn runs_max(&self) -> usize {
        (self.levels + 1 + self.waiting) as usize
    }

    /// The most pages that the output of a spread merge has.
    pub fn aside_pages(&self) -> u32 {
        if self.spread_ops == 0 { 0 } else { self.full_run_pages + self.tail_pages(self.full_run_pages) }
    }

    /// The length of the longest postamble of a run with so many pages of entries.
    fn postamble_bytes(&self, pages: u32) -> usize {
        SUMMARY_BYTES + RUN_NUMBER_BYTES * self.runs_max() + WORD_BYTES * (pages as usize + 1)
    }

    /// The most pages that only hold postamble, in a run with so many pages of entries.
    fn tail_pages(&self, pages: u32) -> u32 {
        if self.run_fits_a_page {
            return 0;
        }
        // An item that does not fit leaves at most this much of a page unused; only the first item
        // is longer, and whatever room it leaves is left in a page with entries.
        let unused = RUN_NUMBER_BYTES - 1;
        self.postamble_bytes(pages).div_ceil(self.page_bytes - HEADER_BYTES - unused) as u32
    }

    /// The most pages appended by one flush.
    ///
    /// Merging many ways writes one run. Merging two ways writes one for each level, which has
    /// at most what the buffer and the levels up to it held.
    pub fn reserve_pages(&self) -> u32 {
        let full = self.full_run_pages;
        if self.spread_ops > 0 {
            // A mount may have to do a whole merge before a flush.
            return full + self.tail_pages(full) + self.buffer_pages + self.tail_pages(self.buffer_pages);
        }
        if self.multi_way {
            return full + self.tail_pages(full);
        }
        let mut held = self.buffer_pages;
        let mut pages = held + self.tail_pages(held);
        for level in 0..=self.levels {
            let capacity = (self.size_ratio.saturating_pow(level + 1) - 1).saturating_mul(self.buffer_pages);
            held = held.saturating_add(capacity.min(full));
            let output = held.min(full);
            pages = pages.saturating_add(output + self.tail_pages(output));
        }
        pages
    }

    /// The most live pages at any time: the oldest run, the younger ones (kept to one full run in
    /// all), and the output of a merge while its inputs still live; a buffer more that a two-way
    /// cascade adds to the younger ones; the runs that wait for a merge that is spread.
    pub fn footprint_pages(&self) -> u32 {
        let waiting = if self.spread_ops > 0 { self.runs_max() as u32 * self.buffer_pages } else { 0 };
        let entries_pages = 3 * self.full_run_pages + self.buffer_pages + waiting;
        if self.run_fits_a_page {
            return entries_pages;
        }
        // Each run, and the output, rounds its tail up twice: for what every postamble has and for
        // its directory.
        let runs = self.runs_max() as u32 + 1;
        entries_pages + runs * (self.tail_pages(1) + 1) + self.tail_pages(entries_pages)
    }
}

/// How much longer than the paper's entries those of a page can be when they are packed, of so many
/// sub-entry numbers: a number 2^21 after the last takes one or two bytes more, which few can be.
const fn far_bytes(numbers: u64) -> usize {
    2 + 2 * (numbers >> 21) as usize
}

/// Refuses options that no store can have.
fn check_options(options: &GeckoOptions) -> Result<(), FtlError> {
    if options.size_ratio < 2 {
        return Err(unsupported(format!("size ratio T is {}; choose 2 or more", options.size_ratio)));
    }
    if !(1..=BUFFER_PAGES_MAX).contains(&options.buffer_pages) {
        let pages = options.buffer_pages;
        return Err(unsupported(format!("a buffer of {pages} pages is asked for; choose 1 to {BUFFER_PAGES_MAX}")));
    }
    if options.spread_ops > 0 && !options.multi_way {
        return Err(unsupported("merges two at a time cannot be spread; ask for one or the other".to_string()));
    }
    Ok(())
}

/// ORs 64 pages into words of 64 pages, from page `start` on.
#[inline]
pub(super) fn add_word(dead: &mut [u64], start: usize, word: u64) {
    let (index, shift) = (start / 64, (start % 64) as u32);
    if word != 0 {
        dead[index] |= word << shift;
        let spill = word.unbounded_shr(64 - shift);
        if spill != 0 {
            dead[index + 1] |= spill;
        }
    }
}

/// The error for a device or options that Logarithmic Gecko cannot serve.
pub(super) fn unsupported(reason: String) -> FtlError {
    FtlError::Unsupported { ftl: "Logarithmic Gecko", reason }
}
