use super::*;
use crate::config::Config;
use alloc::collections::VecDeque;
use nand::Dimensions;

const PAGES: u32 = 16;
const BLOCKS: u32 = 512;

fn geometry() -> Geometry {
    Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: BLOCKS,
        pages_per_block: PAGES,
        page_bytes: 512,
        spare_bytes: 32,
    })
    .unwrap()
}

/// A disk without flash: where each page is, what lives in each block, and who is collected.
struct Disk {
    policy: Box<dyn Placement>,
    place: Vec<u32>,
    holds: Vec<Vec<u32>>,
    live: Vec<u32>,
    open: [Option<u32>; GROUPS],
    queue: Vec<VecDeque<u32>>,
    free: Vec<u32>,
    programs: u64,
}

impl Disk {
    fn new(policy: &str, logical: u32) -> Self {
        let entry = super::super::find(policy).unwrap();
        Self {
            policy: (entry.make)(&Config::new(logical), &geometry(), false),
            place: vec![u32::MAX; logical as usize],
            holds: vec![Vec::new(); BLOCKS as usize],
            live: vec![0; BLOCKS as usize],
            open: [None; GROUPS],
            queue: vec![VecDeque::new(); GROUPS],
            free: (0..BLOCKS).collect(),
            programs: 0,
        }
    }

    fn put(&mut self, stream: Stream, lpn: u32) {
        let at = usize::from(stream.0);
        let block = *self.open[at].get_or_insert_with(|| self.free.pop().unwrap());
        self.policy.placed(stream, BlockId(block));
        if let Some(live) = self.live.get_mut(self.place[lpn as usize] as usize) {
            *live -= 1;
        }
        self.place[lpn as usize] = block;
        self.holds[block as usize].push(lpn);
        self.live[block as usize] += 1;
        self.programs += 1;
        if self.holds[block as usize].len() == PAGES as usize {
            self.open[at] = None;
            self.queue[at].push_back(block);
        }
    }

    fn collect(&mut self) {
        let named = self.policy.overfull().filter(|stream| self.queue[usize::from(stream.0)].len() > 1);
        let block = match named {
            Some(stream) => self.queue[usize::from(stream.0)].pop_front().unwrap(),
            None => {
                let queues = self.policy.queues();
                let others = (0..GROUPS).filter(|at| queues >> at & 1 == 0 || !self.policy.names_victims());
                let all = others.flat_map(|at| self.queue[at].iter().copied());
                let block = all.min_by_key(|block| self.live[*block as usize]).unwrap();
                self.queue.iter_mut().for_each(|queue| queue.retain(|other| *other != block));
                block
            }
        };
        for lpn in std::mem::take(&mut self.holds[block as usize]) {
            if self.place[lpn as usize] == block {
                let from = Some(BlockId(block));
                let moved = PageWrite { lpn: Lpn(lpn), cause: Cause::Collection, age: Some(1), from, past: None };
                let stream = self.policy.place(&moved);
                self.put(stream, lpn);
            }
        }
        self.policy.emptied(BlockId(block));
        self.free.push(block);
    }

    fn write(&mut self, lpn: u32) {
        while self.free.len() < 2 * GROUPS {
            self.collect();
        }
        let stream = self.policy.place(&PageWrite::by_host(Lpn(lpn)));
        self.policy.idle(1);
        self.put(stream, lpn);
    }

    /// Programs for each write of the second half of so many.
    fn amplification(&mut self, writes: u32, mut page: impl FnMut(u32) -> u32) -> f64 {
        (0..self.place.len() as u32).for_each(|lpn| self.write(lpn));
        (0..writes / 2).for_each(|at| self.write(page(at)));
        let begun = self.programs;
        (0..writes / 2).for_each(|at| self.write(page(at)));
        (self.programs - begun) as f64 / f64::from(writes / 2)
    }
}

/// Nine writes of ten go to a tenth of the pages.
fn skewed(logical: u32) -> impl FnMut(u32) -> u32 {
    let mut state = 7_u32;
    let mut random = move |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((u64::from(state) * u64::from(below)) >> 32) as u32
    };
    move |_| if random(10) > 0 { random(logical / 10) } else { logical / 10 + random(logical - logical / 10) }
}

const LOGICAL: u32 = BLOCKS * PAGES * 83 / 100;

#[test]
fn groups_program_less_than_moved_data_apart() {
    let [split, midas] =
        ["split", "midas"].map(|policy| Disk::new(policy, LOGICAL).amplification(40 * LOGICAL, skewed(LOGICAL)));
    assert!(midas < 0.9 * split, "{midas} programs a write, {split} with moved data apart");
}

#[test]
fn a_chain_is_found_and_its_queues_are_bounded() {
    let mut disk = Disk::new("midas", LOGICAL);
    disk.amplification(40 * LOGICAL, skewed(LOGICAL));
    assert!(disk.policy.queues().count_ones() >= 1, "{:b}", disk.policy.queues());
}

#[test]
fn nothing_is_named_before_there_is_a_model() {
    let mut midas = Midas::new(LOGICAL, &geometry());
    let moved = |from| PageWrite { cause: Cause::Collection, age: Some(1), from, ..PageWrite::by_host(Lpn(5)) };
    let streams: Vec<u8> = (0..4).map(|_| midas.place(&PageWrite::by_host(Lpn(5))).0).collect();
    assert_eq!(streams, [1; 4], "no group for hot pages yet");
    midas.placed(Stream(1), BlockId(0));
    midas.placed(Stream(2), BlockId(1));
    midas.placed(Stream(3), BlockId(2));
    assert_eq!([0, 1, 2, 9].map(|block| midas.place(&moved(Some(BlockId(block)))).0), [2, 3, 3, 3]);
    let refreshed = PageWrite { cause: Cause::Refresh, ..moved(Some(BlockId(0))) };
    assert_eq!(midas.place(&refreshed).0, 1, "what can barely be read stays in its group");
    assert_eq!((midas.queues(), midas.overfull()), (0, None));
}

#[test]
fn a_group_that_does_not_live_as_said_becomes_the_last() {
    let mut midas = Midas::new(LOGICAL, &geometry());
    let groups = Groups { blocks: [4, 8, 16, 0, 0], live: [0.1, 0.4, 0.8, 0.0, 0.0], amplification: 1.2 };
    midas.groups = groups;
    assert_eq!((midas.queues(), midas.last()), (0b111, 5));
    midas.blocks[2] = 17;
    assert_eq!(midas.overfull(), Some(Stream(2)));
    let lived = [0.15, 0.35, 0.6].map(|share| (share * f64::from(PAGES * LEFT_MIN)) as u32);
    midas.seen.left[..3].fill(LEFT_MIN);
    midas.seen.lived[..3].copy_from_slice(&lived);
    midas.check();
    assert_eq!(midas.groups.blocks, [4, 8, 0, 0, 0]);
    midas.seen.lived[0] = PAGES * LEFT_MIN;
    midas.check();
    assert_eq!(midas.groups.blocks, [0, 8, 0, 0, 0], "the hot group goes alone");
}
