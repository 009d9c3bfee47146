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
//!   directory, with an entry for each inode. An entry lies in the block that the hash of its name
//!   chooses, as in ext3's indexed directories.
//! - What a change of a file dirties is its inode, the bitmaps and group descriptors concerned, and
//!   the block of its directory entry. Dirty blocks gather in memory. A commit writes each of them
//!   once to the journal, between a descriptor and a commit block; ext3 commits every 5 s, or when
//!   a transaction fills a third of the journal.
//! - Committed metadata is written in place [`WRITEBACK`] intervals after its last commit (the
//!   kernel writes back what is 30 s old), or when the journal needs the room of that commit.
//! - Data gathers in a page cache. Blocks that a file gained are written before the metadata of
//!   their commit, in the order of their addresses (ordered mode). Blocks that were there before
//!   are written back like metadata. Data of a file that is deleted before is never written. A
//!   fifth of the cache may be dirty. What the cache holds is not read again; what was not used
//!   lately leaves first. Without a cache data is written and read at once.
//! - Metadata is never read: it stays in memory after it was made.

mod bits;
mod cache;
mod journal;

use crate::request::Op;
use bits::{Bits, Region};
use cache::PageCache;
use journal::Journal;
use std::collections::BTreeSet;

/// Bytes of an inode of ext3.
const INODE_BYTES: u64 = 128;
/// Bytes of a directory for each entry: eight and a name of up to eight, in blocks two thirds full.
const ENTRY_BYTES: u64 = 24;
/// Bytes of a group descriptor.
const DESCRIPTOR_BYTES: u64 = 32;
/// Intervals between commits from a change to its writing in place: 30 s over 5 s.
const WRITEBACK: u64 = 6;
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
    /// Its place among all files ever created.
    pub(crate) name: u32,
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
    /// Operations from one commit to the next, at most.
    pub(crate) commit: u64,
    /// Share of the blocks that the page cache holds; 0 for none.
    pub(crate) cache: f64,
    /// Whether blocks of deleted files are trimmed.
    pub(crate) trim: bool,
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
    names: u32,
    most_files: u64,
    all_inodes: u64,
    cache: PageCache,
    journal: Journal,
    /// Operations so far, those before the last commit, and from one commit to the next, at most.
    operations: u64,
    committed: u64,
    interval: u64,
    dirty: BTreeSet<u32>,
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
            names: 0,
            most_files: 0,
            all_inodes: inodes,
            cache: PageCache::new(blocks, (blocks as f64 * format.cache) as u64),
            journal: Journal::new(journal),
            operations: 0,
            committed: 0,
            interval: format.commit,
            dirty: BTreeSet::new(),
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
        self.journal.blocks()
    }

    #[cfg(test)]
    pub(crate) fn in_journal(&self, block: u32) -> bool {
        self.journal.contains(block)
    }

    /// Makes and writes a file of at least one byte; `None` if blocks or inodes do not suffice.
    pub(crate) fn create(&mut self, bytes: u64, out: &mut Vec<Piece>) -> Option<File> {
        if self.blocks_of(bytes) > self.space.free {
            return None;
        }
        let inode = self.inodes.take_first()?;
        let mut file = File { bytes: 0, name: self.names, inode, head: NONE, tail: NONE };
        self.names = self.names.wrapping_add(1);
        self.most_files = self.most_files.max(self.all_inodes - self.inodes.free);
        self.grow(&mut file, bytes, out);
        self.touch_name(&file);
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
    pub(crate) fn read(&mut self, file: &File, out: &mut Vec<Piece>) {
        let mut block = file.head;
        while block != NONE {
            if !self.cache.hit(block) {
                self.piece(Op::Read, block, out);
            }
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
            self.cache.forget(block);
            self.touch_block_of(block);
            block = self.next[block as usize];
        }
        self.inodes.release(file.inode);
        self.touch_inode(file.inode);
        self.touch_name(&file);
    }

    /// Counts an operation, after which what is due is committed.
    pub(crate) fn operated(&mut self, out: &mut Vec<Piece>) {
        self.operations += 1;
        let due = self.operations >= self.committed + self.interval;
        if due || self.journal.must_commit(self.dirty.len()) || self.cache.must_write() {
            self.commit(out);
        }
    }

    /// Writes data, and commits metadata to the journal. Without a journal it is written in place.
    fn commit(&mut self, out: &mut Vec<Piece>) {
        self.committed = self.operations;
        for block in self.cache.take_due(self.operations) {
            self.write(block, out);
        }
        if self.journal.blocks() == 0 {
            while let Some(block) = self.dirty.pop_first() {
                self.write(block, out);
            }
        } else if !self.dirty.is_empty() {
            while !self.journal.fits(self.dirty.len()) && self.checkpoint(out) {}
            for block in self.journal.commit(&mut self.dirty, self.operations) {
                self.write(block, out);
            }
        }
        let old = self.operations.checked_sub(WRITEBACK * self.interval);
        while old.is_some_and(|old| self.journal.older_than(old)) && self.checkpoint(out) {}
    }

    /// Frees the oldest commit of the journal; false if there is none.
    fn checkpoint(&mut self, out: &mut Vec<Piece>) -> bool {
        let blocks = self.journal.retire();
        for block in blocks.iter().flatten() {
            self.write(*block, out);
        }
        blocks.is_some()
    }

    /// Adds bytes to a file; the blocks must be free.
    fn grow(&mut self, file: &mut File, bytes: u64, out: &mut Vec<Piece>) {
        if !file.bytes.is_multiple_of(self.block_bytes) {
            self.write_data(file.tail, self.operations + WRITEBACK * self.interval, out);
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
            self.write_data(block, 0, out);
            self.touch_block_of(block);
        }
        file.bytes += bytes;
        self.touch_inode(file.inode);
    }

    /// Data for a block, which waits in the page cache, if there is one, for the first commit after
    /// operation `until`.
    fn write_data(&mut self, block: u32, until: u64, out: &mut Vec<Piece>) {
        if !self.cache.put(block, until) {
            self.write(block, out);
        }
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
    fn touch_name(&mut self, file: &File) {
        let (group, _) = self.place(file.inode);
        self.dirty.insert((self.tables(group) + 1) as u32);
        self.touch_descriptor(group);
        self.dirty.extend(self.entry_of(file));
    }

    /// The block of a file's directory entry, in a directory as large as the most files took that
    /// there have been at once.
    fn entry_of(&self, file: &File) -> Option<u32> {
        let blocks = (self.most_files * ENTRY_BYTES).div_ceil(self.block_bytes).clamp(1, self.directory.len());
        self.directory.block((hash(file.name) * blocks) >> 32)
    }

    fn place(&self, inode: u32) -> (u64, u64) {
        (u64::from(inode) / self.inodes_per_group, u64::from(inode) % self.inodes_per_group)
    }
}

/// A number of 32 bits that says nothing of its neighbours' (the finalizer of MurmurHash3).
fn hash(name: u32) -> u64 {
    let mut h = name;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    u64::from(h ^ (h >> 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(blocks: u64) -> Format {
        Format { blocks, block_bytes: 512, mean_file_blocks: 4.0, journal: 0.01, commit: 1, cache: 0.0, trim: true }
    }

    /// Blocks of a file, in order.
    fn chain(system: &FileSystem, file: &File) -> Vec<u32> {
        let link = |block: &u32| Some(system.next[*block as usize]).filter(|next| *next != NONE);
        std::iter::successors(Some(file.head), link).collect()
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

    /// The blocks that these pieces write.
    fn written(out: &[Piece]) -> Vec<u32> {
        out.iter().flat_map(|piece| piece.first..piece.first + piece.blocks).collect()
    }

    #[test]
    fn metadata_goes_to_the_journal_and_then_in_place() {
        let mut system = FileSystem::new(format(10_000)).unwrap();
        assert_eq!(system.journal_blocks(), 100);
        let mut at = None;
        for round in 1..=20 {
            system.create(512, &mut Vec::new()).unwrap();
            // Block bitmap, inode bitmap, inode table, group descriptors, directory.
            assert_eq!(system.dirty.len(), 5);
            let mut out = Vec::new();
            system.operated(&mut out);
            let (journal, in_place): (Vec<u32>, Vec<u32>) =
                written(&out).into_iter().partition(|block| system.journal.contains(*block));
            assert_eq!(journal.len(), 7, "round {round}");
            assert!(at.is_none_or(|at| journal[0] == at + 1 || journal[0] < at), "the journal is a ring");
            at = journal.last().copied();
            // Of four inodes a block, the block that the last one touched is in place six commits
            // later. What each commit has, bitmaps, descriptors, the directory, never is.
            assert_eq!(in_place.len(), usize::from(round >= 10 && round % 4 == 2), "round {round}: {in_place:?}");
        }
    }

    #[test]
    fn entries_lie_all_over_a_directory_that_grows_with_its_files() {
        let mut system = FileSystem::new(format(10_000)).unwrap();
        let files: Vec<File> = (0..400).map(|_| system.create(512, &mut Vec::new()).unwrap()).collect();
        let blocks: BTreeSet<u32> = files.iter().filter_map(|file| system.entry_of(file)).collect();
        assert_eq!(blocks.len(), 400 * 24 / 512 + 1);
        let next: BTreeSet<u32> = files[..10].iter().filter_map(|file| system.entry_of(file)).collect();
        assert!(next.len() > 5, "names next to each other lie apart: {next:?}");
    }

    #[test]
    fn a_full_journal_writes_its_oldest_commits_in_place() {
        let mut system = FileSystem::new(Format { commit: 1000, ..format(10_000) }).unwrap();
        let (mut out, mut commits) = (Vec::new(), 0);
        while !written(&out).iter().any(|block| !system.journal.contains(*block)) {
            out.clear();
            let file = system.create(512, &mut Vec::new()).unwrap();
            system.operated(&mut out);
            commits += u32::from(!out.is_empty());
            assert!(system.entry_of(&file).is_some() && commits < 5);
        }
        // A third of 100 blocks each, with the frame: the fourth needs the room of the first.
        assert!((3..=4).contains(&commits), "{commits}");
    }

    #[test]
    fn data_waits_for_its_commit_and_what_is_deleted_before_is_never_written() {
        let mut system = FileSystem::new(Format { cache: 0.5, ..format(10_000) }).unwrap();
        let mut out = Vec::new();
        let mut kept = system.create(700, &mut out).unwrap();
        let gone = system.create(512, &mut out).unwrap();
        assert!(system.append(&mut kept, 100, &mut out));
        system.read(&kept, &mut out);
        system.read(&gone, &mut out);
        let (data, dead) = (chain(&system, &kept), chain(&system, &gone));
        system.delete(gone, &mut out);
        assert!(out.iter().all(|piece| piece.op == Op::Trim), "all of it happens in memory: {out:?}");
        out.clear();
        system.operated(&mut out);
        // A block that was written twice is written once, and before any metadata.
        assert_eq!(written(&out)[..2], data);
        assert!(written(&out)[2..].iter().all(|block| !data.contains(block) && !dead.contains(block)));
        out.clear();
        system.read(&kept, &mut out);
        assert!(out.is_empty(), "what was written is still in memory");
    }

    #[test]
    fn much_dirty_data_forces_a_commit() {
        let mut system = FileSystem::new(Format { cache: 0.01, ..format(10_000) }).unwrap();
        system.create(20 * 512, &mut Vec::new()).unwrap();
        assert!(!system.cache.must_write(), "20 of 100 blocks are a fifth");
        system.create(512, &mut Vec::new()).unwrap();
        assert!(system.cache.must_write());
        system.operated(&mut Vec::new());
        assert!(!system.cache.must_write());
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
