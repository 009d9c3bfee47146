//! The engine with its threads, through requests of any range.

use crate::common::{Card, Rng, card, format, mount, slices};
use nand::FaultPlan;
use openftl_lftl::{Engine, LftlError, Options, Policy, Server, Threads};

fn options(policy: Policy) -> Options {
    Options { policy, buffers: 8, ..Options::new(300) }
}

fn served(card: &Card, options: &Options, collectors: u32) -> Server {
    Server::start(format(card, options).unwrap(), Threads { workers: 4, collectors }).unwrap()
}

#[test]
fn ranges_of_any_length_are_read_back_under_every_policy() {
    for (_, policy) in Policy::TABLE {
        let card = card(4, 24, 8, FaultPlan::default());
        let disk = served(&card, &options(policy), if policy == Policy::WritePath { 0 } else { 3 });
        let size = disk.size_bytes() as usize;
        let quarter = size / 4;
        let mut contents = vec![vec![0_u8; quarter]; 4];
        std::thread::scope(|scope| {
            for (part, truth) in contents.iter_mut().enumerate() {
                let disk = &disk;
                scope.spawn(move || {
                    let mut rng = Rng(part as u64);
                    for round in 0..300_u32 {
                        let at = rng.below(quarter as u64) as usize;
                        let length = rng.below((quarter - at).min(100_000) as u64) as usize;
                        let offset = (part * quarter + at) as u64;
                        if round % 3 == 0 {
                            let mut out = vec![0xEE; length];
                            disk.read(offset, &mut out).unwrap();
                            assert!(out == truth[at..at + length], "round {round} at {offset}");
                        } else {
                            let data: Vec<u8> = (0..length).map(|_| rng.next() as u8).collect();
                            disk.write(offset, &data).unwrap();
                            truth[at..at + length].copy_from_slice(&data);
                        }
                        if round % 50 == 0 {
                            disk.flush().unwrap();
                        }
                    }
                });
            }
        });
        drop(disk.shut_down().unwrap());
        let (disk, report) = mount(&card, &options(policy)).unwrap();
        assert!(report.clean);
        let disk =
            Server::start(disk, Threads { workers: 1, collectors: u32::from(policy != Policy::WritePath) }).unwrap();
        let mut out = vec![0; quarter * 4];
        disk.read(0, &mut out).unwrap();
        assert!(out == contents.concat(), "other bytes after a mount");
    }
}

#[test]
fn a_flush_is_kept_when_nothing_is_saved() {
    let card = card(4, 24, 8, FaultPlan::default());
    let disk = served(&card, &options(Policy::Adaptive), 2);
    let data: Vec<u8> = (0..200_000_u32).map(|i| (i * 7) as u8).collect();
    disk.write(12_345, &data).unwrap();
    disk.flush().unwrap();
    drop(disk);
    let (disk, report) = mount(&card, &options(Policy::Adaptive)).unwrap();
    assert!(!report.clean);
    let disk = Server::start(disk, Threads { workers: 2, collectors: 1 }).unwrap();
    let mut out = vec![0; data.len()];
    disk.read(12_345, &mut out).unwrap();
    assert!(out == data);
}

#[test]
fn threads_that_a_policy_does_not_have_are_refused() {
    let refused = |policy, threads| {
        let card = card(4, 24, 8, FaultPlan::default());
        let engine = Engine::format(slices(&card), options(policy)).unwrap();
        match Server::start(engine, threads) {
            Err(LftlError::Unsupported { reason }) => reason,
            other => panic!("{:?} was started", other.map(|_| threads)),
        }
    };
    assert!(refused(Policy::WritePath, Threads { workers: 1, collectors: 1 }).contains("npgc"));
    assert!(refused(Policy::Parallel, Threads { workers: 1, collectors: 0 }).contains("collector"));
    assert!(refused(Policy::Adaptive, Threads { workers: 0, collectors: 1 }).contains("worker"));
}
