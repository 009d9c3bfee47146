//! FTLs that are broken on purpose: an explorer that does not catch them explores nothing.

#![allow(clippy::unwrap_used)]

use ftl::ftls::{self, Entry};
use ftl::{Config, Flash, Ftl, FtlError, MountReport, RamReport, Shortage};
use nand::{BlockId, Lpn, Nand, Stamp};
use openftl_crash::{Device, Fault, Mode, Options, replay_on, run_on};

/// What is broken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Defect {
    /// A write is acknowledged before its page is programmed.
    Early,
    /// A mount retires a good block.
    Leak,
    /// A mount trusts what it reads first: it reads a page, and panics if that cannot be read.
    Panic,
    /// A mount waits for a page to become readable.
    Hang,
    /// After a mount a page reads as its neighbour.
    Neighbour,
}

struct Broken {
    inner: Box<dyn Ftl<Device>>,
    defect: Defect,
    /// Acknowledged, not written.
    held: Option<(Lpn, Stamp)>,
    mounted: bool,
}

impl Broken {
    fn settle(&mut self) -> Result<(), FtlError> {
        match self.held.take() {
            Some((lpn, stamp)) => self.inner.write(lpn, &stamp),
            None => Ok(()),
        }
    }
}

impl Ftl<Device> for Broken {
    fn logical_pages(&self) -> u32 {
        self.inner.logical_pages()
    }

    fn read(&mut self, lpn: Lpn, out: &mut Stamp) -> Result<(), FtlError> {
        if let Some((_, held)) = self.held.filter(|(held, _)| *held == lpn) {
            *out = held;
            return Ok(());
        }
        let neighbour = self.mounted && self.defect == Defect::Neighbour && lpn.0 == 7;
        self.inner.read(if neighbour { Lpn(6) } else { lpn }, out)
    }

    fn write(&mut self, lpn: Lpn, data: &Stamp) -> Result<(), FtlError> {
        if self.defect != Defect::Early {
            return self.inner.write(lpn, data);
        }
        self.settle()?;
        self.held = Some((lpn, *data));
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, count: u32) -> Result<(), FtlError> {
        self.settle()?;
        self.inner.trim(lpn, count)
    }

    fn flush(&mut self) -> Result<(), FtlError> {
        self.settle()?;
        self.inner.flush()
    }

    fn idle(&mut self) -> Result<bool, FtlError> {
        self.inner.idle()
    }

    fn ram(&self) -> RamReport {
        self.inner.ram()
    }

    fn read_only(&self) -> Option<Shortage> {
        self.inner.read_only()
    }

    fn flash(&self) -> &Flash<Device> {
        self.inner.flash()
    }

    fn flash_mut(&mut self) -> &mut Flash<Device> {
        self.inner.flash_mut()
    }

    fn into_flash(self: Box<Self>) -> Flash<Device> {
        self.inner.into_flash()
    }

    fn check(&mut self) -> Result<(), String> {
        self.inner.check()
    }
}

fn page() -> Entry<Device> {
    ftls::find("page").unwrap()
}

fn format(flash: Flash<Device>, config: &Config, defect: Defect) -> Result<Box<dyn Ftl<Device>>, FtlError> {
    Ok(Box::new(Broken { inner: (page().format)(flash, config)?, defect, held: None, mounted: false }))
}

type Mounted = Result<(Box<dyn Ftl<Device>>, MountReport), FtlError>;

fn mount(mut flash: Flash<Device>, config: &Config, defect: Defect) -> Mounted {
    let nand = flash.nand_mut();
    let blocks = nand.geometry().blocks();
    let pages: Vec<_> = (0..nand.geometry().pages()).map(nand::Ppn).collect();
    match defect {
        Defect::Leak => {
            let good = (0..blocks).rev().map(BlockId).find(|&block| !nand.is_bad(block)).unwrap();
            nand.mark_bad(good)?;
        }
        Defect::Panic => pages.iter().for_each(|&ppn| {
            nand.read_spare(ppn).expect("every page can be read");
        }),
        Defect::Hang => pages
            .iter()
            .for_each(|&ppn| while matches!(nand.read_spare(ppn), Err(nand::NandError::Uncorrectable { .. })) {}),
        Defect::Early | Defect::Neighbour => {}
    }
    let (inner, report) = (page().mount.unwrap())(flash, config)?;
    Ok((Box::new(Broken { inner, defect, held: None, mounted: true }), report))
}

macro_rules! canary {
    ($defect:expr) => {
        Entry::<Device> {
            info: page().info,
            format: |flash, config| format(flash, config, $defect),
            mount: Some(|flash, config| mount(flash, config, $defect)),
        }
    };
}

/// Explores a canary; what was found, after making sure that its id replays it.
fn found(entry: Entry<Device>, faults: Vec<Fault>) -> Vec<openftl_crash::Failure> {
    let options = Options {
        mode: Mode::Linear,
        cuts: 2000,
        geometry: Some("tiny".into()),
        faults,
        endurance: 100,
        ..Options::default()
    };
    let entries = [entry];
    let report = run_on(&entries, &options, &mut |_| {}).unwrap();
    let failures = report.ftls[0].failures.clone();
    for failure in &failures {
        assert_eq!(replay_on(&entries, &failure.id).unwrap().as_ref(), Some(failure));
        assert_eq!(openftl_crash::replay(&failure.id).unwrap(), None, "the FTL that is not broken");
    }
    failures
}

#[test]
fn a_write_acknowledged_too_early_is_caught_and_shrunk_to_a_few_steps() {
    let failures = found(canary!(Defect::Early), vec![]);
    assert!(failures[0].what.contains("should be version"), "{failures:#?}");
    assert!(failures[0].workload.len() <= 3, "{failures:#?}");
    assert_eq!(failures[0].cuts.len(), 1);
}

#[test]
fn a_mount_that_leaks_a_block_is_caught_by_cutting_one_device_again_and_again() {
    let failures = found(canary!(Defect::Leak), vec![Fault::Endurance]);
    assert!(!failures.is_empty());
}

#[test]
fn a_mount_that_panics_at_a_torn_page_is_caught() {
    let failures = found(canary!(Defect::Panic), vec![]);
    assert!(failures[0].what.contains("every page can be read"), "{failures:#?}");
    assert!(failures[0].workload.len() <= 2, "{failures:#?}");
}

#[test]
fn a_mount_that_never_ends_is_caught() {
    let failures = found(canary!(Defect::Hang), vec![]);
    assert!(failures.iter().any(|failure| failure.what.contains("does not end")), "{failures:#?}");
}

#[test]
fn data_of_another_page_is_caught() {
    let failures = found(canary!(Defect::Neighbour), vec![]);
    assert!(
        failures[0].what.contains("never written there") || failures[0].what.contains("should be"),
        "{failures:#?}"
    );
}

#[test]
fn a_battery_that_saves_nothing_is_caught() {
    fn dftl() -> Entry<Device> {
        ftls::find("dftl").unwrap()
    }
    let failures = found(
        Entry {
            info: dftl().info,
            format: |flash, config| (dftl().format)(flash, &Config { battery: false, ..*config }),
            mount: dftl().mount,
        },
        vec![],
    );
    assert!(failures[0].what.contains("logical page"), "{failures:#?}");
    assert!(failures[0].workload.len() <= 2, "{failures:#?}");
}
