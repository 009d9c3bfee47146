//! Failed programs take so many blocks that those of a checkpoint are given up: power cuts then.

#![allow(clippy::unwrap_used)]

use super::{capabilities, ftl_named, log_block_ftls, one_die};
use ftl::ftls::Entry;
use ftl::{Config, Flash, Ftl, FtlError};
use nand::faults::{Cut, CutOutcome, FaultPlan, Faulty};
use nand::{Lpn, Nand, NandError, PageKind, Ppn, SimNand, Stamp};
use openftl_ftl as ftl;

type Device = Faulty<SimNand>;

const LOGICAL: u32 = 12 * 4;
const TRIMMED: Lpn = Lpn(18);

const OUTCOMES: [CutOutcome; 6] = [
    CutOutcome::Done,
    CutOutcome::Torn,
    CutOutcome::Fading(2),
    CutOutcome::FlakyWhole,
    CutOutcome::HalfErased,
    CutOutcome::HalfErasedOddly,
];

fn device(entry: &Entry<Device>, blocks: u32) -> Device {
    let geometry = one_die(blocks, 4, 512);
    Faulty::new(SimNand::new(geometry, capabilities(&entry.info)), FaultPlan::default())
}

struct Disk {
    entry: Entry<Device>,
    ftl: Box<dyn Ftl<Device>>,
    random: u64,
    /// Every version up to this one was written, none of the trimmed page.
    version: u16,
}

impl Disk {
    /// A full disk on a device with three blocks more than it needs, and a page trimmed and
    /// flushed.
    fn new(name: &str, seed: u64) -> Self {
        let entry = ftl_named(name).unwrap();
        let format = |blocks| (entry.format)(Flash::new(device(&entry, blocks)), &Config::new(LOGICAL)).ok();
        let least = (12..60).find(|blocks| format(*blocks).is_some()).unwrap();
        let ftl = format(least + 3).unwrap();
        let mut disk = Self { entry, ftl, random: seed, version: 0 };
        for at in 0..2 * LOGICAL {
            disk.write(Lpn(at % LOGICAL)).unwrap();
        }
        disk.ftl.trim(TRIMMED, 1).unwrap();
        disk.ftl.flush().unwrap();
        disk
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % end
    }

    fn write(&mut self, lpn: Lpn) -> Result<(), FtlError> {
        self.version += 1;
        self.ftl.write(lpn, &Stamp { lpn, version: self.version })
    }

    /// Writes other pages until power is cut or there is no space.
    fn write_others(&mut self) {
        for _ in 0..60 {
            let lpn = Lpn(self.below(LOGICAL.into()) as u32);
            match if lpn == TRIMMED { Ok(()) } else { self.write(lpn) } {
                Ok(()) => {}
                Err(FtlError::Nand(NandError::PowerLost) | FtlError::NoSpace(_)) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Has power cut soon, after two programs failed.
    fn plan(&mut self) {
        let now = self.ftl.flash().nand().ops();
        let (fail, between, later) = (self.below(40), 1 + self.below(3), self.below(12));
        let outcome = OUTCOMES[self.below(OUTCOMES.len() as u64) as usize];
        let plan = self.ftl.flash_mut().nand_mut().plan_mut();
        plan.failing_programs = vec![now + fail, now + fail + between];
        plan.cuts = vec![Cut { at: now + fail + between + later, outcome }];
    }

    /// Mounts again; how many checkpoints begin on flash.
    fn mount(self) -> (Self, usize) {
        let mut nand = self.ftl.into_flash().into_nand();
        nand.power_up();
        (nand.plan_mut().cuts, nand.plan_mut().failing_programs) = (Vec::new(), Vec::new());
        let spares = (0..nand.geometry().pages()).filter_map(|ppn| nand.inner_mut().read_spare(Ppn(ppn)).unwrap());
        let checkpoints = spares.filter(|spare| spare.kind == PageKind::Checkpoint && spare.tag == 0).count();
        let (ftl, _) = (self.entry.mount.unwrap())(Flash::new(nand), &Config::new(LOGICAL)).unwrap();
        (Self { ftl, ..self }, checkpoints)
    }
}

#[test]
fn a_flushed_trim_stays_trimmed_while_only_one_checkpoint_is_left() {
    let mut alone = 0;
    for name in log_block_ftls().map(|entry| entry.info.name) {
        for seed in 0..500 {
            let mut disk = Disk::new(name, seed);
            for round in 0..3 {
                disk.plan();
                disk.write_others();
                let checkpoints;
                (disk, checkpoints) = disk.mount();
                alone += u32::from(checkpoints == 1);
                let mut got = Stamp::UNWRITTEN;
                disk.ftl.read(TRIMMED, &mut got).unwrap();
                assert_eq!(got, Stamp::UNWRITTEN, "{name}, seed {seed}, round {round}, {checkpoints} checkpoints");
            }
        }
    }
    println!("{alone} mounts with one checkpoint");
    assert!(alone > 50, "{alone} mounts with one checkpoint");
}
