//! Requests of one connection over a disk of several lanes: done side by side, bounded, and kept.

use crate::client::{Answer, Ask, Client};
use crate::serving::{Served, memory_disk};
use openftl_blockdev::nbd::ServerOptions;
use openftl_blockdev::nbd::protocol::{SIMPLE_REPLY_MAGIC, chunk, command, errno, flag};
use openftl_blockdev::{BlockDevice, BlockSizes, Disk, DiskError, DiskOptions, DiskReport, Extent, Settling, Zeroing};
use proptest::prelude::*;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use table::AnyBytes;

const PAGE: u64 = 4096;
/// Bytes of a stripe.
const STRIPE: u64 = 16 * PAGE;

/// A disk of which one lane does nothing while it is held.
struct Held {
    disk: Disk<AnyBytes>,
    /// The lane that is held.
    lane: Mutex<Option<usize>>,
    freed: Condvar,
    /// What was done, in order.
    done: Mutex<Vec<String>>,
    /// This page cannot be read.
    lost: Option<u64>,
}

impl Held {
    fn new(shards: usize, lane: Option<usize>) -> Arc<Self> {
        Self::over(memory_disk("gecko", shards, |_| {}), lane, None)
    }

    fn over(disk: Disk<AnyBytes>, lane: Option<usize>, lost: Option<u64>) -> Arc<Self> {
        Arc::new(Self { disk, lane: Mutex::new(lane), freed: Condvar::new(), done: Mutex::default(), lost })
    }

    fn free(&self) {
        *self.lane.lock().unwrap() = None;
        self.freed.notify_all();
    }

    fn note(&self, what: impl Into<String>) {
        self.done.lock().unwrap().push(what.into());
    }

    fn wait(&self, lane: usize) {
        let mut held = self.lane.lock().unwrap();
        while *held == Some(lane) {
            held = self.freed.wait(held).unwrap();
        }
    }
}

impl BlockDevice for Held {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn block_sizes(&self) -> BlockSizes {
        self.disk.block_sizes()
    }

    fn read_only(&self) -> bool {
        false
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        self.wait(self.lane_of(offset).0);
        if let Some(page) = self.lost.filter(|page| (offset..offset + out.len() as u64).contains(&(page * PAGE))) {
            let source = ftl::FtlError::Lost { lpn: nand::Lpn(page as u32) };
            return Err(DiskError::Page { page, offset: page * PAGE, source });
        }
        self.disk.read(offset, out)
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> Result<(), DiskError> {
        self.wait(self.lane_of(offset).0);
        let done = self.disk.write(offset, data, fua);
        self.note("write");
        done
    }

    fn write_zeroes(&self, offset: u64, bytes: u64, how: Zeroing) -> Result<(), DiskError> {
        self.disk.write_zeroes(offset, bytes, how)
    }

    fn trim(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), DiskError> {
        self.note("trim");
        self.disk.trim(offset, bytes, fua)
    }

    fn flush(&self) -> Result<(), DiskError> {
        self.disk.flush()
    }

    fn lanes(&self) -> usize {
        self.disk.lanes()
    }

    fn lane_of(&self, offset: u64) -> (usize, u64) {
        self.disk.lane_of(offset)
    }

    fn settle(&self, lane: usize, what: Settling) -> Result<(), DiskError> {
        self.note(if what == Settling::All { format!("settle {lane}") } else { "settle writes".to_owned() });
        self.disk.settle(lane, what)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.note("sync");
        self.disk.sync()
    }

    fn sync_waits(&self) -> bool {
        true
    }

    fn extents(&self, offset: u64, bytes: u64, visit: &mut dyn FnMut(Extent) -> bool) -> Result<(), DiskError> {
        self.disk.extents(offset, bytes, visit)
    }

    fn report(&self) -> Result<DiskReport, DiskError> {
        self.disk.report()
    }
}

/// Requests under way on one connection, whose replies may come in any order and interleaved.
struct Pipeline {
    client: Client,
    open: HashMap<u64, (Ask, Answer)>,
}

impl Pipeline {
    fn new(client: Client) -> Self {
        Self { client, open: HashMap::new() }
    }

    fn send(&mut self, ask: Ask, data: &[u8]) -> u64 {
        let cookie = self.client.send(ask, data);
        self.open.insert(cookie, (ask, Answer { errno: 0, data: Vec::new() }));
        cookie
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        crate::client::take(&mut self.client.stream)
    }

    /// Waits until some request has been answered.
    fn next(&mut self) -> (u64, Answer) {
        loop {
            let simple = u32::from_be_bytes(self.take()) == SIMPLE_REPLY_MAGIC;
            let (flags, kind, errno) = match simple {
                true => (chunk::DONE, chunk::NONE, u32::from_be_bytes(self.take())),
                false => (u16::from_be_bytes(self.take()), u16::from_be_bytes(self.take()), 0),
            };
            let cookie = u64::from_be_bytes(self.take());
            let (ask, mut answer) = self.open.remove(&cookie).expect("a reply to no request");
            answer.errno |= errno;
            let bytes = match simple {
                true if ask.command == command::READ && errno == 0 => ask.bytes,
                true => 0,
                false => u32::from_be_bytes(self.take()),
            };
            let mut data = vec![0; bytes as usize];
            self.client.stream.read_exact(&mut data).unwrap();
            match kind {
                chunk::OFFSET_DATA => {
                    let at = (u64::from_be_bytes(data[..8].try_into().unwrap()) - ask.offset) as usize;
                    answer.data.resize(ask.bytes as usize, 0xEE);
                    answer.data[at..at + data.len() - 8].copy_from_slice(&data[8..]);
                }
                chunk::ERROR => answer.errno = u32::from_be_bytes(data[..4].try_into().unwrap()),
                _ if simple => answer.data = data,
                _ => {}
            }
            if flags & chunk::DONE != 0 {
                return (cookie, answer);
            }
            self.open.insert(cookie, (ask, answer));
        }
    }
}

fn read(offset: u64, bytes: u64) -> Ask {
    Ask { command: command::READ, offset, bytes: bytes as u32, ..Ask::default() }
}

fn write(offset: u64, bytes: u64, flags: u16) -> Ask {
    Ask { command: command::WRITE, flags, offset, bytes: bytes as u32 }
}

#[test]
fn a_lane_that_is_busy_keeps_no_other_request_of_the_connection_waiting() {
    let device = Held::new(3, Some(0));
    let served = Served::new(Arc::clone(&device) as _, ServerOptions::default());
    for client in [Client::structured(&served.path()), Client::simple(&served.path())] {
        *device.lane.lock().unwrap() = Some(0);
        let mut pipeline = Pipeline::new(client);
        let stuck = [read(0, PAGE), write(PAGE, PAGE, 0), read(STRIPE - PAGE, 2 * PAGE)];
        let stuck = stuck.map(|ask| pipeline.send(ask, &vec![5; if ask.command == command::WRITE { 4096 } else { 0 }]));
        let written = pipeline.send(write(STRIPE, PAGE, 0), &[7; 4096]);
        assert_eq!(pipeline.next(), (written, Answer { errno: 0, data: vec![] }));
        let found = pipeline.send(read(STRIPE, PAGE), &[]);
        let (cookie, answer) = pipeline.next();
        assert!(cookie == found && answer.data == [7; 4096], "what was acknowledged is read");
        device.free();
        let mut rest: Vec<u64> = stuck.iter().map(|_| pipeline.next().0).collect();
        rest.sort_unstable();
        assert_eq!(rest, stuck);
    }
}

#[test]
fn a_flush_settles_every_lane_before_it_syncs_and_fua_syncs_after_the_write() {
    let device = Held::new(3, None);
    let served = Served::new(Arc::clone(&device) as _, ServerOptions::default());
    let mut client = Client::structured(&served.path());
    let done = |client: &mut Client, ask: Ask, data: &[u8]| {
        device.done.lock().unwrap().clear();
        assert_eq!(client.ask(ask, data).errno, 0);
        let mut done = device.done.lock().unwrap().clone();
        assert_eq!(done.pop().as_deref(), Some("sync"), "{ask:?}");
        done.sort();
        done
    };
    let settled = ["settle 0", "settle 1", "settle 2"];
    assert_eq!(done(&mut client, Ask { command: command::FLUSH, ..Ask::default() }, &[]), settled);
    let fua = write(STRIPE - PAGE, 2 * PAGE, flag::FUA);
    assert_eq!(done(&mut client, fua, &[1; 8192]), ["settle writes", "settle writes", "write", "write"]);
    let trim = Ask { command: command::TRIM, flags: flag::FUA, offset: 0, bytes: 4 * STRIPE as u32 };
    assert_eq!(done(&mut client, trim, &[]), [&settled[..], &["trim"]].concat());
    device.done.lock().unwrap().clear();
    assert_eq!(client.write(0, &[1; 4096], 0), 0);
    assert_eq!(*device.done.lock().unwrap(), ["write"], "without FUA nothing is synced");
}

#[test]
fn what_is_under_way_is_bounded_and_nothing_of_it_is_lost() {
    let device = Held::new(2, Some(1));
    let served = Served::new(Arc::clone(&device) as _, ServerOptions::default());
    let mut pipeline = Pipeline::new(Client::structured(&served.path()));
    pipeline.client.stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let ask = write(STRIPE, STRIPE, 0);
    let mut one = pipeline.client.cookie;
    let mut bytes = Vec::new();
    for i in 0..600_u64 {
        one += 1;
        bytes.extend(0x2560_9513_u32.to_be_bytes());
        bytes.extend([0, 0, 0, command::WRITE as u8]);
        bytes.extend(one.to_be_bytes());
        bytes.extend(ask.offset.to_be_bytes());
        bytes.extend(ask.bytes.to_be_bytes());
        bytes.extend(vec![i as u8; STRIPE as usize]);
        pipeline.open.insert(one, (ask, Answer { errno: 0, data: vec![] }));
    }
    // The lane is held: the server takes so much, and then the socket is full.
    let mut sent = 0;
    let stopped = loop {
        match pipeline.client.stream.write(&bytes[sent..]) {
            Ok(more) => sent += more,
            Err(error) => break error.kind(),
        }
    };
    assert_eq!(stopped, ErrorKind::WouldBlock);
    assert!((4 << 20..6 << 20).contains(&sent), "{sent} B were taken");
    device.free();
    let mut rest = pipeline.client.stream.try_clone().unwrap();
    rest.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let left = bytes[sent..].to_vec();
    let writer = std::thread::spawn(move || rest.write_all(&left).unwrap());
    while !pipeline.open.is_empty() {
        assert_eq!(pipeline.next().1.errno, 0);
    }
    writer.join().unwrap();
    // Writes of one range are done in the order in which they were sent.
    let last = pipeline.client.read(STRIPE, PAGE as u32).data;
    assert_eq!(last, [(599 % 256) as u8; 4096]);
}

#[test]
fn who_reads_no_replies_of_several_lanes_is_dropped_and_harms_no_other() {
    let options = ServerOptions { patience: Duration::from_millis(300), ..ServerOptions::default() };
    let served = Served::new(Arc::new(memory_disk("gecko", 3, |_| {})), options);
    for deaf in [Client::simple(&served.path()), Client::structured(&served.path())] {
        let mut deaf = Pipeline::new(deaf);
        let dropped = served.log.count("does not take its replies");
        for _ in 0..50 {
            deaf.send(read(0, 1 << 20), &[]);
        }
        let begin = Instant::now();
        while served.log.count("does not take its replies") == dropped {
            let mut client = Client::structured(&served.path());
            assert_eq!(client.write(8192, b"still here", 0), 0);
            assert_eq!(client.read(8192, 300_000).data[..10], *b"still here");
            assert!(begin.elapsed() < Duration::from_secs(30), "it was not dropped");
        }
    }
}

#[test]
fn a_part_that_fails_fails_its_request_in_either_form() {
    let disk = memory_disk("gecko", 3, |_| {});
    disk.write(0, &vec![3; 6 * STRIPE as usize], false).unwrap();
    let served = Served::new(Held::over(disk, None, Some(17)), ServerOptions::default());
    for mut client in [Client::simple(&served.path()), Client::structured(&served.path())] {
        for flags in [0, flag::DF] {
            let ask = Ask { flags: if client.structured { flags } else { 0 }, ..read(0, 6 * STRIPE) };
            assert_eq!(client.ask(ask, &[]).errno, errno::EIO);
            let ask = Ask { offset: 2 * STRIPE, bytes: 4 * STRIPE as u32, ..ask };
            assert!(client.ask(ask, &[]).data == vec![3; 4 * STRIPE as usize]);
        }
        assert_eq!(client.read(PAGE, 2 * PAGE as u32).data, [3; 8192]);
        assert!(client.read(0, 0) == Answer { errno: 0, data: vec![] });
    }
}

#[test]
fn a_server_that_is_stopped_answers_what_is_under_way_first() {
    let device = Held::new(2, Some(1));
    let mut served = Served::new(Arc::clone(&device) as _, ServerOptions::default());
    let mut pipeline = Pipeline::new(Client::structured(&served.path()));
    let cookies: Vec<u64> = (0..40).map(|_| pipeline.send(write(STRIPE, PAGE, flag::FUA), &[4; 4096])).collect();
    // An answer of the other lane says that those before it have been read.
    let other = pipeline.send(read(0, PAGE), &[]);
    assert_eq!(pipeline.next().0, other);
    served.stop.stop();
    std::thread::sleep(Duration::from_millis(50));
    device.free();
    let mut answered: Vec<u64> = cookies.iter().map(|_| pipeline.next().0).collect();
    answered.sort_unstable();
    assert_eq!(answered, cookies);
    served.end();
}

/// One of the requests of a client that keeps many under way.
#[derive(Clone, Debug)]
enum Act {
    Read,
    Write { fill: u8, fua: bool },
    Zero { hole: bool, fua: bool },
    Flush,
}

fn act() -> impl Strategy<Value = (Act, u64, u64)> {
    let act = prop_oneof![
        4 => Just(Act::Read),
        6 => (1..=255_u8, any::<bool>()).prop_map(|(fill, fua)| Act::Write { fill, fua }),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(hole, fua)| Act::Zero { hole, fua }),
        1 => Just(Act::Flush),
    ];
    (act, any::<u64>(), prop_oneof![3 => 1..9000_u64, 1 => 1..400_000_u64])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// As many requests as ranges allow are under way; no two of them overlap, unless both read.
    #[test]
    fn a_deep_queue_reads_what_was_acknowledged(
        shards in 1..5_usize,
        structured in any::<bool>(),
        write_through in any::<bool>(),
        acts in prop::collection::vec(act(), 1..120),
    ) {
        let change = |options: &mut DiskOptions| options.write_through = write_through;
        let served = Served::new(Arc::new(memory_disk("gecko", shards, change)), ServerOptions::default());
        let client = if structured { Client::structured(&served.path()) } else { Client::simple(&served.path()) };
        let mut plain = vec![0; client.size as usize];
        let mut pipeline = Pipeline::new(client);
        let mut wanted: HashMap<u64, Vec<u8>> = HashMap::new();
        let settle = |pipeline: &mut Pipeline, wanted: &mut HashMap<u64, Vec<u8>>| {
            let (cookie, answer) = pipeline.next();
            assert_eq!(answer.errno, 0);
            assert!(wanted.remove(&cookie).is_none_or(|wanted| wanted == answer.data), "a read of something else");
        };
        for (act, offset, bytes) in acts {
            let offset = offset % plain.len() as u64;
            let bytes = bytes.min(plain.len() as u64 - offset);
            let range = offset as usize..(offset + bytes) as usize;
            let overlaps = |(other, _): &(Ask, Answer)| {
                let (begin, end) = (other.offset, other.offset + u64::from(other.bytes));
                begin < offset + bytes && offset < end && !(matches!(act, Act::Read) && other.command == command::READ)
            };
            // This client does not read while it sends: what it asks has to fit into sockets.
            let much = |pipeline: &Pipeline| {
                pipeline.open.values().map(|(ask, _)| u64::from(ask.bytes)).sum::<u64>() + bytes > 100_000
            };
            while !pipeline.open.is_empty() && much(&pipeline) || pipeline.open.values().any(overlaps) {
                settle(&mut pipeline, &mut wanted);
            }
            match act {
                Act::Read => {
                    let cookie = pipeline.send(read(offset, bytes), &[]);
                    wanted.insert(cookie, plain[range].to_vec());
                }
                Act::Write { fill, fua } => {
                    let data: Vec<u8> = (0..bytes).map(|i| fill.wrapping_add((i / 64) as u8)).collect();
                    pipeline.send(write(offset, bytes, if fua { flag::FUA } else { 0 }), &data);
                    plain[range].copy_from_slice(&data);
                }
                Act::Zero { hole, fua } => {
                    let flags = if hole { 0 } else { flag::NO_HOLE } | if fua { flag::FUA } else { 0 };
                    pipeline.send(Ask { command: command::WRITE_ZEROES, flags, offset, bytes: bytes as u32 }, &[]);
                    plain[range].fill(0);
                }
                Act::Flush => {
                    pipeline.send(Ask { command: command::FLUSH, ..Ask::default() }, &[]);
                }
            }
        }
        while !pipeline.open.is_empty() {
            settle(&mut pipeline, &mut wanted);
        }
        let all = pipeline.client.read(0, plain.len() as u32);
        prop_assert!(all.data == plain, "something is lost");
    }
}
