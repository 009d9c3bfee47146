//! How LFTL's engine scales: with workers over banks that take as long as a real card's, and with
//! threads over memory that takes no time.
//!
//! `cargo bench -p openftl-lftl` measures for some minutes; `-- --quick` does each case for a
//! moment and says nothing about speed. With `--features contention` it says how long threads wait
//! for locks. `--json` prints one object a case, `--case TEXT` measures
//! those whose name holds the text.
#![allow(missing_docs)]

use nand::{Dimensions, Geometry, Limits, Lpn, MemNand, Profile};
use openftl_lftl::{Card, Devices, Engine, Options, Policy, Recovery, SECTOR_BYTES, Server, Threads, Timed};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

/// Banks of pages of the card of LFTL's paper, or of pages of one sector.
fn engine(banks: u32, page_bytes: u32, policy: Policy) -> Result<(Engine, Options), Failure> {
    let card = card()?;
    let pages_per_block = 64;
    let blocks = if page_bytes as usize == SECTOR_BYTES { 128 } else { 64 };
    let geometry = Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks,
        pages_per_block,
        page_bytes,
        spare_bytes: 64,
    })?;
    let pages = banks * blocks * pages_per_block * 7 / 10;
    let options = Options { policy, ..Options::new(pages) };
    let devices = (0..banks).map(|_| MemNand::new(geometry, card.capabilities)).collect();
    let engine = Engine::format(devices, options.clone())?;
    // So often that the memory of every page was used: the first use of it is slow.
    let data = vec![0xC3; page_bytes as usize];
    (0..3).try_for_each(|_| (0..pages).try_for_each(|page| engine.write(Lpn(page), 0, &data)))?;
    engine.trim(Lpn(pages / 2), pages - pages / 2)?;
    Ok((mount(engine.shut_down()?, &options)?, options))
}

fn mount(devices: Devices, options: &Options) -> Result<Engine, Failure> {
    Ok(Engine::mount(devices, options.clone(), Recovery::Bounded, 16)?.0)
}

fn card() -> Result<Profile, Failure> {
    Ok(nand::find("lftl-card").ok_or("there is no profile lftl-card")?.clone())
}

/// A measurement: what was done in how long.
struct Measured {
    case: String,
    requests: u64,
    bytes: u64,
    seconds: f64,
}

/// Lets `threads` repeat `request` for some time. It is told its thread and its turn.
fn repeat(
    time: Duration,
    threads: u64,
    request: impl Fn(u64, u64) -> Result<u64, Failure> + Sync,
) -> Result<(u64, u64, f64), Failure> {
    let (requests, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let begin = Instant::now();
    let failed = thread::scope(|scope| {
        let run = |thread: u64| {
            let (requests, bytes, request) = (&requests, &bytes, &request);
            move || {
                let (mut turn, mut done) = (0, 0);
                while begin.elapsed() < time {
                    // The clock is not looked at for every request.
                    for _ in 0..16 {
                        done += request(thread, turn).map_err(|error| error.to_string())?;
                        turn += 1;
                    }
                }
                requests.fetch_add(turn, Ordering::Relaxed);
                bytes.fetch_add(done, Ordering::Relaxed);
                Ok::<(), String>(())
            }
        };
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(run(thread))).collect();
        let ended = handles.into_iter().map(|handle| handle.join().unwrap_or_else(|_| Err("a thread panicked".into())));
        ended.filter_map(Result::err).next()
    });
    match failed {
        Some(error) => Err(error.into()),
        None => {
            let seconds = begin.elapsed().as_secs_f64();
            Ok((requests.into_inner(), bytes.into_inner(), seconds))
        }
    }
}

fn mixed(thread: u64, turn: u64) -> u64 {
    let mut z = thread.wrapping_mul(0xD1B5_4A32_D192_ED03) ^ turn.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ z >> 31
}

/// Whole pages written or read at random by 64 clients, served by so many workers over 16 banks
/// with the card's times. Each has a channel of its own, so that nothing but the engine limits.
fn with_delays(workers: u32, write: bool, time: Duration) -> Result<Measured, Failure> {
    const BANKS: u32 = 16;
    let (engine, options) = engine(BANKS, 32 << 10, Policy::WritePath)?;
    let mut profile = Profile { limits: Limits::NONE, ..card()? };
    profile.geometry.dies_per_channel = 1;
    let card = Card::new(&profile, BANKS);
    let timed = |(bank, nand)| Timed::new(nand, &card, bank, Duration::ZERO);
    let banks: Vec<MemNand> = engine.shut_down()?.into_kind()?;
    let engine = mount((0..).zip(banks).map(timed).collect(), &options)?;
    let disk = Server::start(engine, Threads { workers, collectors: 0 })?;
    // Less than what the card has room for without collecting.
    let pages = u64::from(options.logical_pages) / 2;
    let data = vec![0xA5; 32 << 10];
    if !write {
        (0..pages).try_for_each(|page| disk.write(page << 15, &data[..1]))?;
        disk.flush()?;
    }
    let (requests, bytes, seconds) = repeat(time, 64, |thread, turn| {
        let offset = (mixed(thread, turn) % pages) << 15;
        if write {
            disk.write(offset, &data)?;
        } else {
            disk.read(offset, &mut vec![0; 32 << 10])?;
        }
        Ok(32 << 10)
    })?;
    Ok(Measured { case: name_with_delays(workers, write), requests, bytes, seconds })
}

fn name_with_delays(workers: u32, write: bool) -> String {
    format!("delays, pages {}, {workers} workers", if write { "written" } else { "read" })
}

fn name_without_delays(case: &str, threads: u64, page_bytes: u32) -> String {
    format!("no delays, 4 KiB of {} KiB pages {case}, {threads} threads", page_bytes >> 10)
}

/// Sectors written without delays, straight into the engine.
fn without_delays(case: &str, threads: u64, page_bytes: u32, time: Duration) -> Result<Measured, Failure> {
    let (engine, options) = engine(16, page_bytes, Policy::WritePath)?;
    let sectors = u64::from(page_bytes) / SECTOR_BYTES as u64;
    let data = vec![0x5A; SECTOR_BYTES];
    let all = u64::from(options.logical_pages) * sectors;
    #[cfg(feature = "contention")]
    openftl_lftl::contention::take();
    let (requests, bytes, seconds) = repeat(time, threads, |thread, turn| {
        let sector = match case {
            "in the buffers" => mixed(thread, turn) % (200 * sectors),
            "in sequence" => (turn + thread * all / threads) % all,
            _ => mixed(thread, turn) % all,
        };
        let at = (sector % sectors) as usize * SECTOR_BYTES;
        engine.write(Lpn((sector / sectors) as u32), at, &data)?;
        Ok(SECTOR_BYTES as u64)
    })?;
    #[cfg(feature = "contention")]
    {
        let (waits, waited) = openftl_lftl::contention::take();
        let percent = waited.as_secs_f64() / (seconds * threads as f64) * 100.0;
        eprintln!("{waits} waits in {requests} requests, {percent:.2}% of the threads' time");
    }
    Ok(Measured { case: name_without_delays(case, threads, page_bytes), requests, bytes, seconds })
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let time = Duration::from_millis(if has("--quick") { 20 } else { 3_000 });
    let wanted = arguments.iter().skip_while(|argument| *argument != "--case").nth(1);
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| name.contains(wanted.as_str()));
    let mut cases: Vec<Box<dyn Fn() -> Result<Measured, Failure>>> = Vec::new();
    for write in [true, false] {
        for workers in [1, 2, 4, 8, 16] {
            if is_wanted(&name_with_delays(workers, write)) {
                cases.push(Box::new(move || with_delays(workers, write, time)));
            }
        }
    }
    for (case, page_bytes) in
        [("in the buffers", 32 << 10), ("in sequence", 32 << 10), ("at random", 4 << 10), ("in sequence", 4 << 10)]
    {
        for threads in [1, 2, 4] {
            if is_wanted(&name_without_delays(case, threads, page_bytes)) {
                cases.push(Box::new(move || without_delays(case, threads, page_bytes, time)));
            }
        }
    }
    for case in cases {
        let Measured { case, requests, bytes, seconds } = case()?;
        let (rate, megabytes) = (requests as f64 / seconds, bytes as f64 / seconds / 1e6);
        if has("--json") {
            println!("{{\"case\":\"{case}\",\"requests_per_s\":{rate:.0},\"megabytes_per_s\":{megabytes:.1}}}");
        } else {
            println!("{case:56} {rate:>12.0} requests/s {megabytes:>9.1} MB/s");
        }
    }
    Ok(())
}
