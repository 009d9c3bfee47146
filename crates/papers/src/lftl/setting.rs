//! The paper's card and host, as far as the paper tells, and what follows from its tables.

use crate::error::PaperError;
use crate::lab::Lab;
use ::lftl::clock::{self, together};
use ::lftl::{
    Card, Devices, Engine, Hollow, Levels, LftlError, Options, OwnTime, Policy, Recovery, Server, Threads, Timed,
};
use nand::{Dimensions, Geometry, Lpn, Profile};
use sim::SimError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The card and its host.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) profile: Profile,
    /// The time that the driver takes for an operation, in the thread that asks for it.
    pub(super) driver: Duration,
    /// The time that the FTL takes of a page.
    pub(super) own: OwnTime,
    /// Time is real: threads sleep as long as the card is busy.
    pub(super) real_time: bool,
}

const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

impl Setting {
    /// The paper's. The times of driver and FTL are fitted to three facts. The linear scan of Table
    /// 4 takes 458 us a block, 287 of them for the card. With 16 queues Table 2 has 147 us a read
    /// and 85 us a write of 32 KiB, whatever the number of banks. With one queue it has 618 and 728
    /// us, the card's 287 and 404 among them. That the times vary exponentially is assumed: it is
    /// the least that makes waiting gradual, as the rows between show.
    pub(super) fn paper(lab: &Lab) -> Result<Self, PaperError> {
        let missing =
            || SimError::BadSpec { what: "device profile", reason: "there is no profile `lftl-card`".to_owned() };
        let profile = nand::find("lftl-card").ok_or_else(missing)?.clone();
        let own =
            OwnTime { read_alone: us(147), write_alone: us(85), read: us(34), write: us(89), varies: Some(lab.seed) };
        Ok(Self { profile, driver: us(150), own, real_time: lab.real_time })
    }

    /// What the setting is, for the readers of a figure.
    pub(super) fn sentences(&self) -> Vec<String> {
        let t = &self.profile.timing;
        let l = &self.profile.limits;
        let us = |ns: u64| ns / 1000;
        vec![
            format!(
                "card: read {} us, program {} us, erase {} us; a channel gives {} B/us and takes {}; two banks share a \
                 read queue; all reads {} B/us, all writes {}; fitted to Table 1, see `openftl list`",
                us(t.read_ns),
                us(t.program_ns),
                us(t.erase_ns),
                l.channel_read_bytes_per_us,
                t.channel_bytes_per_us,
                l.host_read_bytes_per_us,
                l.host_write_bytes_per_us
            ),
            if self.real_time {
                "real time: threads sleep as long as the card would be busy, so no two runs give the same; MB are 10^6 B"
            } else {
                "virtual time: the engine and its threads run, and only waiting moves their clock; MB are 10^6 B"
            }
            .to_owned(),
        ]
    }

    /// The times of driver and FTL, for the readers of a figure.
    pub(super) fn own_sentence(&self) -> String {
        format!(
            "fitted to Tables 2 and 4: the driver takes {} us an operation; the FTL {} us of a page read and {} of one \
             written, one thread at a time and exponentially distributed, and {} and {} us beside others",
            self.driver.as_micros(),
            self.own.read_alone.as_micros(),
            self.own.write_alone.as_micros(),
            self.own.read.as_micros(),
            self.own.write.as_micros()
        )
    }

    /// Runs in virtual time, or in real time if that was asked for.
    pub(super) fn run<T>(&self, act: impl FnOnce() -> Result<T, PaperError>) -> Result<T, PaperError> {
        if self.real_time { act() } else { clock::simulate(act)? }
    }

    /// Bytes of a page.
    pub(super) fn page_bytes(&self) -> usize {
        self.profile.geometry.page_bytes as usize
    }

    /// The first banks of the card, erased, with so many blocks each and without times.
    pub(super) fn hollow(&self, banks: u32, blocks: u32) -> Result<Vec<Hollow>, PaperError> {
        let one = Dimensions { channels: 1, dies_per_channel: 1, blocks, ..self.profile.geometry };
        let geometry = Geometry::new(one)
            .map_err(|error| SimError::BadSpec { what: "blocks of a bank", reason: error.to_string() })?;
        Ok((0..banks).map(|_| Hollow::new(geometry, self.profile.capabilities)).collect())
    }

    /// Banks with the times of the card.
    pub(super) fn on_card(&self, banks: Vec<Hollow>) -> Devices {
        let card = Card::new(&self.profile, banks.len() as u32);
        (0..).zip(banks).map(|(index, bank)| Timed::new(bank, &card, index, self.driver)).collect()
    }

    /// A served disk of these banks, empty.
    pub(super) fn disk(&self, banks: Devices, options: Options, threads: Threads) -> Result<Server, LftlError> {
        Server::start_with(Engine::format(banks, options)?, threads, self.own)
    }
}

/// Bytes per microsecond are megabytes per second.
pub(super) fn megabytes_a_second(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64() / 1e6
}

/// Lets `clients` threads take turns at `requests` requests, as each is ready, and answers how long
/// that takes.
pub(super) fn shared_work(
    clients: u32,
    requests: u64,
    request: impl Fn(u64) -> Result<(), LftlError> + Sync,
) -> Result<Duration, LftlError> {
    let (next, begin) = (AtomicU64::new(0), clock::now());
    let client = || {
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            if turn >= requests {
                return Ok(());
            }
            request(turn)?;
        }
    };
    together((0..clients).map(|_| client).collect()).into_iter().collect::<Result<(), LftlError>>()?;
    Ok(clock::now() - begin)
}

/// The first banks of a card, without what they hold.
pub(super) fn card_alone(setting: &Setting, banks: u32) -> Arc<Card> {
    Card::new(&setting.profile, banks)
}

/// Pages that are written to a disk before it is measured: every page once, then at random until
/// the live pages of blocks are as random writes leave them.
pub(super) struct Aged {
    banks: Vec<Hollow>,
    pub(super) logical_pages: u32,
}

/// The next number of a linear congruential generator, whose upper half repeats late.
pub(super) const fn next_chance(chance: u64) -> u64 {
    chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

/// Random overwrites of each page on average.
const OVERWRITES: u64 = 3;

impl Aged {
    /// So many blocks in each of the first banks, of which `live` hold data. No time passes.
    pub(super) fn new(
        setting: &Setting,
        (banks, blocks): (u32, u32),
        live: f64,
        seed: u64,
    ) -> Result<Self, PaperError> {
        let pages = banks * blocks * setting.profile.geometry.pages_per_block;
        let logical_pages = (f64::from(pages) * live) as u32;
        let options = Options { policy: Policy::WritePath, ..Options::new(logical_pages) };
        let engine = Engine::format(setting.hollow(banks, blocks)?.into(), options)?;
        let data = vec![0; setting.page_bytes()];
        (0..logical_pages).try_for_each(|page| engine.write(Lpn(page), 0, &data))?;
        let mut state = seed;
        for _ in 0..OVERWRITES * u64::from(logical_pages) {
            state = next_chance(state);
            engine.write(Lpn((state >> 33) as u32 % logical_pages), 0, &data)?;
        }
        Ok(Self { banks: engine.shut_down()?.into_kind()?, logical_pages })
    }

    /// A served disk in this state, with the engine's levels of collection unless others are given.
    pub(super) fn disk(
        &mut self,
        setting: &Setting,
        (policy, levels): (Policy, Option<Levels>),
        threads: Threads,
    ) -> Result<Server, PaperError> {
        let banks = setting.on_card(self.banks.iter_mut().map(Hollow::snapshot).collect());
        let options = Options { policy, levels, ..Options::new(self.logical_pages) };
        let (engine, _) = Engine::mount(banks, options, Recovery::Bounded, 1)?;
        Ok(Server::start_with(engine, threads, setting.own)?)
    }
}
