//! The buffer against plain maps: of sectors, and of buffers that a policy looks through.
#![allow(clippy::unwrap_used)]

use openftl_buffer::{Found, Replacement, WriteBuffer};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

const PAGES: u32 = 24;
const PAGE_BYTES: u64 = 2048;
const BLOCK_PAGES: u32 = 4;

/// One of the things that can be done with a disk behind a buffer.
#[derive(Clone, Debug)]
enum Step {
    Write(u32, Range<u64>),
    Read(u32, Range<u64>),
    Trim(u32, u32),
    Flush,
}

/// Bytes of a page: often whole sectors.
fn part() -> impl Strategy<Value = Range<u64>> {
    let sectors = (0..4u64, 1..=4u64).prop_map(|(first, count)| first * 512..((first + count) * 512).min(PAGE_BYTES));
    let bytes = (0..PAGE_BYTES, 1..=PAGE_BYTES).prop_map(|(first, count)| first..(first + count).min(PAGE_BYTES));
    prop_oneof![3 => sectors, 1 => bytes]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..PAGES, part()).prop_map(|(page, part)| Step::Write(page, part)),
        // In order, so that whole blocks are written.
        4 => (0..PAGES).prop_map(|page| Step::Write(page, 0..PAGE_BYTES)),
        6 => (0..PAGES, part()).prop_map(|(page, part)| Step::Read(page, part)),
        2 => (0..PAGES, 1..6u32).prop_map(|(first, count)| Step::Trim(first, count)),
        1 => Just(Step::Flush),
    ]
}

/// Bytes of pages: each is the number of the step that wrote it.
type Bytes = BTreeMap<(u32, u64), usize>;

/// A disk: what a host believes, what flash has, and what was handed to the buffer.
struct Disk {
    buffer: WriteBuffer<usize>,
    policy: Replacement,
    room: usize,
    truth: Bytes,
    flash: Bytes,
    buffered: Bytes,
    programs: usize,
    completing: usize,
}

impl Disk {
    fn new(policy: Replacement, room: usize) -> Self {
        let buffer = WriteBuffer::new(policy, room as u32, PAGE_BYTES as u32, BLOCK_PAGES);
        let (truth, flash, buffered) = (Bytes::new(), Bytes::new(), Bytes::new());
        Self { buffer, policy, room, truth, flash, buffered, programs: 0, completing: 0 }
    }

    /// A page leaves for flash. Of a complete page flash must not be asked for anything.
    fn write_out(&mut self, page: u32) {
        let taken = self.buffer.take(page).unwrap();
        self.programs += 1;
        self.completing += usize::from(!taken.complete);
        for byte in 0..PAGE_BYTES {
            let old = self.flash.remove(&(page, byte)).filter(|_| !taken.complete);
            if let Some(new) = self.buffered.remove(&(page, byte)).or(old) {
                self.flash.insert((page, byte), new);
            } else {
                assert!(!taken.complete, "byte {byte} of complete page {page} was never written");
            }
        }
    }

    /// What the policy picks when it looks through all buffers.
    fn picked(&self) -> Vec<u32> {
        let views: Vec<_> = self.buffer.views().collect();
        self.policy.pick(&views, BLOCK_PAGES).into_iter().map(|index| index as u32).collect()
    }

    fn write(&mut self, at: usize, page: u32, part: &Range<u64>) {
        let held = self.buffer.kept(page).is_some();
        while self.buffer.write(page, part, || at).is_none() {
            assert!(!held && self.buffer.len() == self.room, "refused with room for {}", self.room);
            let next = self.buffer.next();
            assert_eq!(next, self.picked());
            assert!(!next.is_empty());
            next.into_iter().for_each(|page| self.write_out(page));
        }
        for byte in part.clone() {
            self.truth.insert((page, byte), at);
            self.buffered.insert((page, byte), at);
        }
        assert_eq!(self.buffer.kept(page).is_some_and(|entered| *entered == at), !held);
    }

    fn read(&mut self, page: u32, part: &Range<u64>) {
        let found = self.buffer.read(page, part);
        for byte in part.clone() {
            let (buffered, flash) = (self.buffered.get(&(page, byte)), self.flash.get(&(page, byte)));
            let answered = match found {
                Found::All => buffered,
                Found::Part => buffered.or(flash),
                Found::Nothing => flash,
            };
            assert_eq!(answered, self.truth.get(&(page, byte)), "byte {byte} of page {page}, {found:?}");
        }
    }

    fn trim(&mut self, first: u32, count: u32) {
        let end = (first + count).min(PAGES);
        let held: Vec<u32> = self.buffer.within(first..end).collect();
        held.into_iter().for_each(|page| assert!(self.buffer.take(page).is_some()));
        for bytes in [&mut self.truth, &mut self.flash, &mut self.buffered] {
            bytes.retain(|(page, _), _| !(first..end).contains(page));
        }
    }

    fn flush(&mut self) {
        let held: Vec<u32> = self.buffer.within(0..u32::MAX).collect();
        held.into_iter().for_each(|page| self.write_out(page));
        assert!(self.buffer.is_empty() && self.buffer.next().is_empty());
        assert_eq!(self.flash, self.truth);
    }

    fn go(&mut self, steps: &[Step]) {
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::Write(page, part) => self.write(at, *page, part),
                Step::Read(page, part) => self.read(*page, part),
                Step::Trim(first, count) => self.trim(*first, *count),
                Step::Flush => self.flush(),
            }
            assert!(self.buffer.len() <= self.room);
            assert_eq!(self.buffer.next(), self.picked(), "after {step:?}");
        }
        self.flush();
    }
}

proptest! {
    #[test]
    fn what_is_read_is_what_was_written(
        steps in prop::collection::vec(step(), 1..150),
        policy in 0..3usize,
        room in 1..12usize,
    ) {
        Disk::new(Replacement::TABLE[policy].1, room).go(&steps);
    }
}

#[test]
fn parts_of_a_page_become_one_page() {
    let mut disk = Disk::new(Replacement::Lru, 4);
    let eighths: Vec<Step> = (0..4).map(|part| Step::Write(3, part * 512..part * 512 + 512)).collect();
    disk.go(&eighths);
    assert_eq!((disk.programs, disk.completing), (1, 0));
    // A sector of which two writes covered a half each is not held.
    let mut disk = Disk::new(Replacement::Lru, 4);
    disk.go(&[Step::Write(3, 0..1000), Step::Write(3, 1000..2048)]);
    assert_eq!((disk.programs, disk.completing), (1, 1));
}

#[test]
fn a_block_that_was_written_in_order_leaves_first_and_whole() {
    let mut buffer = WriteBuffer::new(Replacement::BlockLru, 9, PAGE_BYTES as u32, BLOCK_PAGES);
    for page in [1, 4, 5, 6, 7, 20] {
        assert!(buffer.write(page, &(0..PAGE_BYTES), || ()).is_some());
    }
    assert_eq!(buffer.next(), [4, 5, 6, 7]);
    buffer.take(5);
    assert_eq!(buffer.next(), [1], "it is no sequence any more");
    assert_eq!(buffer.read(1, &(0..1)), Found::All);
    assert_eq!(buffer.next(), [4, 6, 7], "what was read is used");
}
