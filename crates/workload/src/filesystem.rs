//! Where a file system puts files and what it writes beside them, modelled on ext3.
//!
//! Layout, in blocks: superblock; group descriptors; then groups of as many blocks as the bits of a
//! block, each beginning with its block bitmap, inode bitmap and inode table. The journal and the
//! directory take the first blocks that are free after that; the rest is for data. A last group
//! without room for its own tables is left out.
//!
//! - Allocation is first-fit by block: the lowest free one, but a file that grows takes the block
//!   after its last if that is free. Inodes likewise. Freed blocks can be taken at once.
//! - A file's map is in its inode; indirect blocks are not modelled. All files are in one
//!   directory, with an entry of fixed place for each inode.
//! - What a change of a file dirties is its inode, the bitmaps and group descriptors concerned, and
//!   the block of its directory entry. Dirty blocks gather in memory. A commit writes each of them
//!   once to the journal, between a descriptor and a commit block, and every [`CHECKPOINT_COMMITS`]
//!   commits, or when the journal is full, those committed since are written in place (ext3 commits
//!   every 5 s, and the kernel writes back what is 30 s old).
//! - Metadata is never read: it stays in memory after it was made. Data is not cached at all.

use crate::request::Op;
use std::collections::BTreeSet;

/// Bytes of an inode of ext3.
const INODE_BYTES: u64 = 128;
/// Bytes of a directory entry: eight and a name, rounded up.
const ENTRY_BYTES: u64 = 32;
/// Bytes of a group descriptor.
const DESCRIPTOR_BYTES: u64 = 32;
/// Commits between two checkpoints.
const CHECKPOINT_COMMITS: u32 = 6;
/// Largest request, as the block layer of Linux cuts them.
const REQUEST_BYTES: u64 = 512 << 10;
/// A journal has at least so many blocks.
const JOURNAL_MIN: u64 = 16;
/// Blocks of a file system at most; memory is 4.1 bytes for each, and 24 bytes for each file.
pub(crate) const BLOCKS_MAX: u64 = 1 << 26;
/// After the last block of a file.
const NONE: u32 = u32::MAX;

/// A piece of work for the device: blocks from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) op: Op,
    pub(crate) first: u32,
    pub(crate) blocks: u32,
}

/// A living file. Its blocks are a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) bytes: u64,
    inode: u32,
    head: u32,
    tail: u32,
}

/// What a file system is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    /// Blocks of the space it may use.
    pub(crate) blocks: u64,
    pub(crate) block_bytes: u64,
    /// Blocks of a file on average, by which inodes are provided.
    pub(crate) mean_file_blocks: f64,
    /// Share of the blocks for the journal; 0 for none.
    pub(crate) journal: f64,
    /// Whether blocks of deleted files are trimmed.
    pub(crate) trim: bool,
}

/// Numbers with a free or taken bit each.
struct Bits {
    words: Vec<u64>,
    free: u64,
    /// All words before this one are full.
    lowest: usize,
}

impl Bits {
    fn new(count: u64) -> Self {
        let mut words = vec![0u64; count.div_ceil(64) as usize];
        if let (Some(last), rest @ 1..) = (words.last_mut(), count % 64) {
            *last = u64::MAX << rest;
        }
        Self { words, free: count, lowest: 0 }
    }

    fn take(&mut self, at: u32) -> bool {
        let (word, bit) = (at as usize / 64, 1u64 << (at % 64));
        let is_free = self.words.get(word).is_some_and(|w| w & bit == 0);
        if is_free {
            self.words[word] |= bit;
            self.free -= 1;
        }
        is_free
    }

    fn take_first(&mut self) -> Option<u32> {
        while *self.words.get(self.lowest)? == u64::MAX {
            self.lowest += 1;
        }
        let at = (self.lowest * 64) as u32 + self.words[self.lowest].trailing_ones();
        self.take(at).then_some(at)
    }

    fn release(&mut self, at: u32) {
        let word = at as usize / 64;
        self.words[word] &= !(1u64 << (at % 64));
        self.free += 1;
        self.lowest = self.lowest.min(word);
    }
}

/// Blocks that were taken for one purpose, in pieces.
struct Region(Vec<(u32, u32)>);

impl Region {
    fn take(blocks: u64, space: &mut Bits) -> Option<Self> {
        let mut pieces: Vec<(u32, u32)> = Vec::new();
        for _ in 0..blocks {
            let block = space.take_first()?;
            match pieces.last_mut() {
                Some((first, count)) if *first + *count == block => *count += 1,
                _ => pieces.push((block, 1)),
            }
        }
        Some(Self(pieces))
    }

    fn len(&self) -> u64 {
        self.0.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    /// The block at a place within the region.
    fn block(&self, mut place: u64) -> Option<u32> {
        self.0.iter().find_map(|(first, count)| {
            let inside = place < u64::from(*count);
            let block = inside.then_some(*first + place as u32);
            place = place.saturating_sub(u64::from(*count));
            block
        })
    }
}

/// The file system: who has which block, and what is to be written.
pub(crate) struct FileSystem {
    space: Bits,
    inodes: Bits,
    /// The block after each block of a file.
    next: Vec<u32>,
    block_bytes: u64,
    group_blocks: u64,
    inodes_per_group: u64,
    group_descriptor_blocks: u64,
    data_blocks: u64,
    directory: Region,
    journal: Region,
    journal_blocks: u64,
    journal_at: u64,
    journal_used: u64,
    commits: u32,
    dirty: BTreeSet<u32>,
    committed: BTreeSet<u32>,
    trim: bool,
    request_blocks: u32,
    written: u64,
}

impl FileSystem {
    /// An empty one; `None` if nothing is left for data.
    pub(crate) fn new(format: Format) -> Option<Self> {
        if format.blocks == 0 {
            return None;
        }
        let block = format.block_bytes;
        let group_blocks = block * 8;
        let groups = format.blocks.div_ceil(group_blocks);
        let group_descriptor_blocks = (groups * DESCRIPTOR_BYTES).div_ceil(block);
        let in_group = format.blocks.min(group_blocks);
        let wanted = (in_group as f64 / format.mean_file_blocks.max(1.0)).ceil() as u64;
        let table = (wanted * INODE_BYTES).div_ceil(block);
        let inodes_per_group = table * block / INODE_BYTES;
        let last = format.blocks - (groups - 1) * group_blocks;
        let (groups, blocks) = match last > 2 + table || groups == 1 {
            true => (groups, format.blocks),
            false => (groups - 1, format.blocks - last),
        };
        let mut space = Bits::new(blocks);
        for at in 0..groups {
            let before = if at == 0 { 1 + group_descriptor_blocks } else { 0 };
            let taken = (at * group_blocks..).take((before + 2 + table) as usize);
            if !taken.into_iter().all(|block| space.take(block as u32)) {
                return None;
            }
        }
        let journal_blocks = match format.journal {
            share if share > 0.0 => ((blocks as f64 * share) as u64).max(JOURNAL_MIN),
            _ => 0,
        };
        let journal = Region::take(journal_blocks, &mut space)?;
        let inodes = groups * inodes_per_group;
        let directory = Region::take((inodes * ENTRY_BYTES).div_ceil(block), &mut space)?;
        Some(Self {
            data_blocks: space.free,
            space,
            inodes: Bits::new(inodes),
            next: vec![0; blocks as usize],
            block_bytes: block,
            group_blocks,
            inodes_per_group,
            group_descriptor_blocks,
            directory,
            journal_blocks: journal.len(),
            journal,
            journal_at: 0,
            journal_used: 0,
            commits: 0,
            dirty: BTreeSet::new(),
            committed: BTreeSet::new(),
            trim: format.trim,
            request_blocks: (REQUEST_BYTES / block).max(1) as u32,
            written: 0,
        })
    }

    /// Blocks that files can have.
    pub(crate) fn data_blocks(&self) -> u64 {
        self.data_blocks
    }

    /// Blocks that files have.
    pub(crate) fn used_blocks(&self) -> u64 {
        self.data_blocks - self.space.free
    }

    /// Blocks written so far, data, journal and metadata.
    pub(crate) fn written_blocks(&self) -> u64 {
        self.written
    }

    /// Blocks of a file of these bytes.
    pub(crate) fn blocks_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.block_bytes)
    }

    /// Blocks of the journal.
    pub(crate) fn journal_blocks(&self) -> u64 {
        self.journal_blocks
    }

    /// Makes and writes a file of at least one byte; `None` if blocks or inodes do not suffice.
    pub(crate) fn create(&mut self, bytes: u64, out: &mut Vec<Piece>) -> Option<File> {
        if self.blocks_of(bytes) > self.space.free {
            return None;
        }
        let inode = self.inodes.take_first()?;
        let mut file = File { bytes: 0, inode, head: NONE, tail: NONE };
        self.grow(&mut file, bytes, out);
        self.touch_name(inode);
        Some(file)
    }

    /// Writes so many bytes after the end of a file. False, and nothing is done, if blocks do not
    /// suffice.
    pub(crate) fn append(&mut self, file: &mut File, bytes: u64, out: &mut Vec<Piece>) -> bool {
        let more = self.blocks_of(file.bytes + bytes) - self.blocks_of(file.bytes);
        let fits = more <= self.space.free;
        if fits {
            self.grow(file, bytes, out);
        }
        fits
    }

    /// Reads a file whole.
    pub(crate) fn read(&self, file: &File, out: &mut Vec<Piece>) {
        let mut block = file.head;
        while block != NONE {
            self.piece(Op::Read, block, out);
            block = self.next[block as usize];
        }
    }

    /// Deletes a file.
    pub(crate) fn delete(&mut self, file: File, out: &mut Vec<Piece>) {
        let mut block = file.head;
        while block != NONE {
            if self.trim {
                self.piece(Op::Trim, block, out);
            }
            self.space.release(block);
            self.touch_block_of(block);
            block = self.next[block as usize];
        }
        self.inodes.release(file.inode);
        self.touch_inode(file.inode);
        self.touch_name(file.inode);
    }

    /// Whether so much is dirty that a commit cannot wait: a quarter of the journal, as in ext3.
    pub(crate) fn must_commit(&self) -> bool {
        self.journal_blocks > 0 && self.dirty.len() as u64 + 2 >= self.journal_blocks / 4
    }

    /// Commits what is dirty to the journal. Without a journal it is written in place.
    pub(crate) fn commit(&mut self, out: &mut Vec<Piece>) {
        if self.dirty.is_empty() {
            return;
        }
        if self.journal_blocks > 0 {
            let blocks = self.dirty.len() as u64 + 2;
            if self.journal_used + blocks > self.journal_blocks {
                self.checkpoint(out);
            }
            for _ in 0..blocks {
                if let Some(block) = self.journal.block(self.journal_at) {
                    self.write(block, out);
                }
                self.journal_at = (self.journal_at + 1) % self.journal_blocks;
            }
            self.journal_used += blocks;
        }
        self.committed.append(&mut self.dirty);
        self.commits += 1;
        if self.commits >= CHECKPOINT_COMMITS || self.journal_blocks == 0 {
            self.checkpoint(out);
        }
    }

    /// Writes in place what was committed, after which the journal is empty.
    fn checkpoint(&mut self, out: &mut Vec<Piece>) {
        while let Some(block) = self.committed.pop_first() {
            self.write(block, out);
        }
        (self.commits, self.journal_used) = (0, 0);
    }

    /// Adds bytes to a file; the blocks must be free.
    fn grow(&mut self, file: &mut File, bytes: u64, out: &mut Vec<Piece>) {
        if !file.bytes.is_multiple_of(self.block_bytes) {
            self.write(file.tail, out);
        }
        for _ in self.blocks_of(file.bytes)..self.blocks_of(file.bytes + bytes) {
            let after = file.tail.wrapping_add(1);
            let near = file.tail != NONE && self.space.take(after);
            let Some(block) = (if near { Some(after) } else { self.space.take_first() }) else { break };
            match file.tail {
                NONE => file.head = block,
                tail => self.next[tail as usize] = block,
            }
            self.next[block as usize] = NONE;
            file.tail = block;
            self.write(block, out);
            self.touch_block_of(block);
        }
        file.bytes += bytes;
        self.touch_inode(file.inode);
    }

    fn write(&mut self, block: u32, out: &mut Vec<Piece>) {
        self.written += 1;
        self.piece(Op::Write, block, out);
    }

    /// A block more to do; joins the piece before it if that ends there.
    fn piece(&self, op: Op, block: u32, out: &mut Vec<Piece>) {
        match out.last_mut() {
            Some(last) if last.op == op && last.first + last.blocks == block && last.blocks < self.request_blocks => {
                last.blocks += 1;
            }
            _ => out.push(Piece { op, first: block, blocks: 1 }),
        }
    }

    /// First block of the tables of a group.
    fn tables(&self, group: u64) -> u64 {
        group * self.group_blocks + if group == 0 { 1 + self.group_descriptor_blocks } else { 0 }
    }

    fn touch_descriptor(&mut self, group: u64) {
        self.dirty.insert((1 + group * DESCRIPTOR_BYTES / self.block_bytes) as u32);
    }

    fn touch_block_of(&mut self, block: u32) {
        let group = u64::from(block) / self.group_blocks;
        self.dirty.insert(self.tables(group) as u32);
        self.touch_descriptor(group);
    }

    fn touch_inode(&mut self, inode: u32) {
        let (group, place) = self.place(inode);
        self.dirty.insert((self.tables(group) + 2 + place * INODE_BYTES / self.block_bytes) as u32);
    }

    /// An inode and its directory entry come or go.
    fn touch_name(&mut self, inode: u32) {
        let (group, _) = self.place(inode);
        self.dirty.insert((self.tables(group) + 1) as u32);
        self.touch_descriptor(group);
        let entry = self.directory.block(u64::from(inode) * ENTRY_BYTES / self.block_bytes);
        self.dirty.extend(entry);
    }

    fn place(&self, inode: u32) -> (u64, u64) {
        (u64::from(inode) / self.inodes_per_group, u64::from(inode) % self.inodes_per_group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(blocks: u64) -> Format {
        Format { blocks, block_bytes: 512, mean_file_blocks: 4.0, journal: 0.01, trim: true }
    }

    /// Blocks of a file, in order.
    fn chain(system: &FileSystem, file: &File) -> Vec<u32> {
        let mut out = Vec::new();
        system.read(file, &mut out);
        out.iter().flat_map(|piece| piece.first..piece.first + piece.blocks).collect()
    }

    #[test]
    fn files_have_blocks_of_their_own_and_give_them_back() {
        let mut system = FileSystem::new(format(10_000)).unwrap();
        let (mut out, all) = (Vec::new(), system.data_blocks());
        let mut a = system.create(1000, &mut out).unwrap();
        let b = system.create(3000, &mut out).unwrap();
        assert!(system.append(&mut a, 600, &mut out));
        assert_eq!(a.bytes, 1600);
        let (blocks_a, blocks_b) = (chain(&system, &a), chain(&system, &b));
        assert_eq!((blocks_a.len(), blocks_b.len()), (4, 6));
        assert!(blocks_a.iter().all(|block| !blocks_b.contains(block)));
        assert_eq!(system.used_blocks(), 10);
        // The block after its last is taken, so it grows around the other.
        assert_eq!(blocks_a[2], blocks_b[5] + 1);
        out.clear();
        system.delete(a, &mut out);
        let trimmed: u32 = out.iter().map(|piece| piece.blocks).sum();
        assert!(out.iter().all(|piece| piece.op == Op::Trim) && trimmed == 4);
        // First fit: the hole is taken first.
        let c = system.create(1500, &mut out).unwrap();
        assert_eq!(chain(&system, &c), [blocks_a[0], blocks_a[1], blocks_a[2]]);
        system.delete(b, &mut out);
        system.delete(c, &mut out);
        assert_eq!((system.used_blocks(), system.space.free), (0, all));
    }

    #[test]
    fn a_full_one_refuses_and_changes_nothing() {
        let mut system = FileSystem::new(format(300)).unwrap();
        let mut out = Vec::new();
        let all = system.data_blocks() * 512;
        let mut file = system.create(all - 512, &mut out).unwrap();
        out.clear();
        assert!(system.create(513, &mut out).is_none());
        assert!(!system.append(&mut file, 513, &mut out));
        assert!(out.is_empty() && file.bytes == all - 512);
        assert!(system.append(&mut file, 512, &mut out));
        assert_eq!(system.space.free, 0);
    }

    #[test]
    fn metadata_goes_to_the_journal_and_then_in_place() {
        let mut system = FileSystem::new(format(10_000)).unwrap();
        let journal: Vec<u32> = (0..system.journal_blocks()).map(|at| system.journal.block(at).unwrap()).collect();
        assert_eq!(journal.len(), 100);
        for round in 1..=CHECKPOINT_COMMITS {
            let mut data = Vec::new();
            system.create(512, &mut data).unwrap();
            // Block bitmap, inode bitmap, inode table, group descriptors, directory.
            assert_eq!(system.dirty.len(), 5);
            let mut out = Vec::new();
            system.commit(&mut out);
            let blocks: Vec<u32> = out.iter().flat_map(|piece| piece.first..piece.first + piece.blocks).collect();
            let at = (round as usize - 1) * 7;
            assert_eq!(blocks[..7], journal[at..at + 7]);
            // Four inodes are in a block, so six are in two.
            let in_place = if round == CHECKPOINT_COMMITS { 6 } else { 0 };
            assert_eq!(blocks.len() - 7, in_place, "round {round}");
            assert!(blocks[7..].iter().all(|block| !journal.contains(block)));
        }
        assert!(system.committed.is_empty() && system.dirty.is_empty());
        let mut out = Vec::new();
        system.commit(&mut out);
        assert!(out.is_empty(), "nothing to commit, nothing written");
    }

    #[test]
    fn groups_have_their_own_tables() {
        // Groups have 4096 blocks; the last of 10 blocks has no room for its tables.
        let whole = FileSystem::new(format(2 * 4096)).unwrap();
        let more = FileSystem::new(format(2 * 4096 + 10)).unwrap();
        assert_eq!(whole.data_blocks(), more.data_blocks());
        assert_eq!((whole.tables(0), whole.tables(1)), (2, 4096));
        let mut system = FileSystem::new(format(2 * 4096)).unwrap();
        let far = system.create(4096 * 512, &mut Vec::new()).unwrap();
        assert!(chain(&system, &far).iter().all(|block| !(4096..4096 + 2 + 256).contains(block)));
        assert!([0, 1, 20].into_iter().all(|blocks| FileSystem::new(format(blocks)).is_none()));
    }
}
