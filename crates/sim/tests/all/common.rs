//! Workloads and devices for the tests.
#![allow(clippy::unwrap_used)]

use nand::geometry::Dimensions;
use nand::{Capabilities, Timing};
use openftl_sim::source::{Op, Request, Source};
use openftl_sim::{DevicePlan, SimError, WorkloadContext, WorkloadSpec};

pub const TIMING: Timing = Timing {
    read_ns: 50_000,
    spare_read_ns: 20_000,
    program_ns: 500_000,
    erase_ns: 3_000_000,
    channel_bytes_per_us: 400,
    ..Timing::NONE
};

/// A device of `blocks` blocks of 128 pages of 4 KiB.
pub fn device(channels: u32, dies_per_channel: u32, blocks: u32, ratio: f64) -> DevicePlan {
    let dimensions = Dimensions {
        channels,
        dies_per_channel,
        planes_per_die: 1,
        blocks,
        pages_per_block: 128,
        page_bytes: 4096,
        spare_bytes: 64,
    };
    DevicePlan::new(
        "test",
        dimensions,
        Capabilities { spare_reprograms: 8, ..Capabilities::MODERN },
        TIMING,
        None,
        ratio,
    )
    .unwrap()
}

/// Splitmix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

/// Uniform requests of one page, some of them reads, arriving at a steady rate.
pub struct Uniform {
    pub random: Random,
    pub pages: u64,
    pub page_bytes: u64,
    pub reads_percent: u64,
    pub every_ns: u64,
    pub at_ns: u64,
}

impl Source for Uniform {
    fn fill(&mut self, out: &mut [Request]) -> Result<usize, openftl_sim::source::WorkloadError> {
        for r in out.iter_mut() {
            let op = if self.reads_percent > 0 && self.random.below(100) < self.reads_percent {
                Op::Read
            } else {
                Op::Write
            };
            let offset = self.random.below(self.pages) * self.page_bytes;
            *r = Request { at_ns: self.at_ns, op, offset, bytes: self.page_bytes, fua: false };
            self.at_ns += self.every_ns;
        }
        Ok(out.len())
    }

    fn timed(&self) -> bool {
        self.every_ns > 0
    }

    fn describe(&self) -> String {
        "uniform".to_owned()
    }
}

pub fn uniform(reads_percent: u64, every_ns: u64) -> WorkloadSpec {
    WorkloadSpec::new("uniform", move |c: &WorkloadContext| -> Result<Box<dyn Source>, SimError> {
        Ok(Box::new(Uniform {
            random: Random(c.seed),
            pages: c.capacity_bytes / u64::from(c.page_bytes),
            page_bytes: u64::from(c.page_bytes),
            reads_percent,
            every_ns,
            at_ns: 0,
        }))
    })
}

/// The same requests every time, then the end.
pub struct Fixed(pub Vec<Request>);

impl Source for Fixed {
    fn fill(&mut self, out: &mut [Request]) -> Result<usize, openftl_sim::source::WorkloadError> {
        let n = out.len().min(self.0.len());
        for (to, from) in out.iter_mut().zip(self.0.drain(..n)) {
            *to = from;
        }
        Ok(n)
    }

    fn timed(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "fixed".to_owned()
    }
}

pub fn fixed(requests: Vec<Request>) -> WorkloadSpec {
    WorkloadSpec::new("fixed", move |_: &WorkloadContext| -> Result<Box<dyn Source>, SimError> {
        Ok(Box::new(Fixed(requests.clone())))
    })
}
