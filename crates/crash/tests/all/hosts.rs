//! Disks in files whose process is killed, whose host dies, or whose host runs out of space, at any
//! write of the file.
//!
//! After a kill everything that was acknowledged is there. After the death of the host the disk is
//! as it was at some time since the last sync: what one page shows and another does not never
//! contradicts the order in which they were written. A full host stops writes, and nothing else.

use ftl::ftls::{Durability, Entry};
use ftl::{Config, Flash, Ftl, FtlError};
use nand::file::Volatile;
use nand::{Access, Capabilities, Dimensions, FileNand, Geometry, Lpn, NandError, ProgramOrder};
use openftl_crash::Shared;
use table::AnyBytes;

type Device = Shared<FileNand<Volatile>>;
type Disk = Box<dyn Ftl<AnyBytes>>;

const PAGES: u32 = 100;
const PAGE: usize = 512;
const WRITES: u32 = 400;
/// The host dies at one write in so many.
const STEP: usize = 31;

fn geometry() -> Geometry {
    Geometry::new(Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 64,
        pages_per_block: 8,
        page_bytes: PAGE as u32,
        spare_bytes: 32,
    })
    .expect("the geometry is valid")
}

/// One line of a disk's life: what was written to it, in order.
struct Host {
    disk: Disk,
    device: Device,
    /// The page that each write went to; the first write has number 1.
    writes: Vec<u32>,
    /// The last write that was acknowledged.
    done: u32,
    /// The last write that was acknowledged before a sync.
    synced: u32,
    state: u64,
}

fn content(number: u32) -> [u8; PAGE] {
    let mut page = [number as u8 | 1; PAGE];
    page[..4].copy_from_slice(&number.to_le_bytes());
    page
}

impl Host {
    fn format(entry: &Entry<AnyBytes>, config: &Config, seed: u64) -> Self {
        let order = entry.info.program_order;
        let free = order == ProgramOrder::Free || seed.is_multiple_of(2);
        let can = if free {
            Capabilities { program_order: ProgramOrder::Free, spare_reprograms: 4, ..Capabilities::MODERN }
        } else {
            Capabilities { spare_reprograms: 4, ..Capabilities::MODERN }
        };
        let bytes = FileNand::<Volatile>::bytes_needed(&geometry(), 0) as usize;
        let file = FileNand::create_on(Volatile::new(vec![0; bytes]), geometry(), can, b"").expect("it is made");
        let device = Shared::new(file);
        let mut disk = (entry.format)(Flash::new(Box::new(device.clone())), config).expect("the disk fits");
        disk.flush().expect("an empty disk is flushed");
        device.get().sync().expect("the host is well");
        Self { disk, device, writes: Vec::new(), done: 0, synced: 0, state: seed }
    }

    fn random(&mut self, below: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % below
    }

    /// Looks at the host, or changes it.
    fn host<T>(&self, look: impl FnOnce(&mut Volatile) -> T) -> T {
        look(self.device.get().medium_mut())
    }

    /// Writes until the host fails or everything is written.
    fn work(&mut self, count: u32) -> Result<(), FtlError> {
        for i in 0..count {
            // Some pages more often than others.
            let among = if i % 3 == 0 { PAGES } else { PAGES / 5 };
            let lpn = self.random(among as usize) as u32;
            self.writes.push(lpn);
            let number = self.writes.len() as u32;
            self.disk.write(Lpn(lpn), &content(number))?;
            self.done = number;
            if i % 37 == 36 {
                self.disk.flush()?;
                if self.device.get().sync().is_ok() {
                    self.synced = self.done;
                }
            }
        }
        Ok(())
    }

    /// The last write of a page up to this one; 0 if there is none.
    fn last_of(&self, lpn: u32, end: u32) -> u32 {
        self.writes[..end as usize].iter().rposition(|at| *at == lpn).map_or(0, |at| at as u32 + 1)
    }

    /// Which write each page shows; errors are `None`.
    fn shown(disk: &mut Disk) -> Vec<Option<u32>> {
        (0..PAGES)
            .map(|lpn| {
                let mut page = [0; PAGE];
                disk.read(Lpn(lpn), &mut page).ok()?;
                let number = u32::from_le_bytes([page[0], page[1], page[2], page[3]]);
                let whole = if number == 0 { page == [0; PAGE] } else { page == content(number) };
                assert!(whole, "{lpn} reads {number} in part");
                Some(number)
            })
            .collect()
    }

    /// While the host fails: nothing is written any more, and a page reads as it should or not at
    /// all.
    fn check_failing(&mut self, error: &FtlError) -> Result<(), String> {
        if !matches!(error, FtlError::Nand(NandError::Host { .. })) {
            return Err(format!("a failing host is reported as: {error}"));
        }
        let contents = |host: &mut Volatile| host.contents().to_vec();
        let bytes = self.host(contents);
        for lpn in 0..5 {
            if self.disk.write(Lpn(lpn), &content(u32::MAX)).is_ok() {
                return Err("a write is acknowledged although the host failed".into());
            }
        }
        for (what, outcome) in
            [("flush", self.disk.flush()), ("idle", self.disk.idle().map(drop)), ("save", self.disk.power_failing())]
        {
            let saves_nothing = what == "save" && self.disk.battery_pages() == 0;
            if !saves_nothing && !matches!(outcome, Err(FtlError::Nand(NandError::Host { .. }))) {
                return Err(format!("{what} after the host failed: {outcome:?}"));
            }
        }
        if bytes != self.host(contents) {
            return Err("the file was written although the host failed".into());
        }
        let under_way = self.writes.len() as u32;
        for (lpn, shown) in (0..PAGES).zip(Self::shown(&mut self.disk)) {
            let may = [self.last_of(lpn, self.done), self.last_of(lpn, under_way)];
            if shown.is_some_and(|number| !may.contains(&number) && number != u32::MAX) {
                return Err(format!("logical page {lpn} reads {shown:?}, may be one of {may:?}"));
            }
        }
        Ok(())
    }

    /// Mounts what is left, which shows all writes up to one that is `least` or later, and none
    /// after it.
    fn mount(&mut self, entry: &Entry<AnyBytes>, config: &Config, left: Volatile, least: u32) -> Result<(), String> {
        let file = FileNand::open_on(left, Access::ReadWrite).map_err(|error| format!("opening: {error}"))?;
        let device = Shared::new(file);
        let mount = entry.mount.ok_or("it cannot be mounted")?;
        let (mut disk, _) =
            mount(Flash::new(Box::new(device.clone())), config).map_err(|error| format!("mounting: {error}"))?;
        let shown = Self::shown(&mut disk);
        let last = shown.iter().flatten().copied().max().unwrap_or(0);
        if last < least {
            return Err(format!("write {last} is the last that shows, {least} was promised"));
        }
        for (lpn, shown) in (0..PAGES).zip(shown) {
            let wanted = self.last_of(lpn, last);
            if shown != Some(wanted) {
                return Err(format!("logical page {lpn} shows {shown:?}, but {wanted} at the time of write {last}"));
            }
        }
        disk.check()?;
        (self.disk, self.device) = (disk, device);
        self.writes.truncate(last as usize);
        self.done = last;
        Ok(())
    }
}

/// Lets the host run full at its `room`-th write; whether that happened before the work was done.
fn live_and_die(entry: &Entry<AnyBytes>, config: &Config, seed: u64, room: u64) -> Result<bool, String> {
    let mut host = Host::format(entry, config, seed);
    if seed.is_multiple_of(5) {
        // A disk that has been used.
        host.work(WRITES).map_err(|error| error.to_string())?;
    }
    host.host(|host| host.fill_after(Some(room)));
    let failed = host.work(WRITES);
    if let Err(error) = &failed {
        host.check_failing(error)?;
    }
    let mut killed = host.host(|host| host.clone());
    killed.fill_after(None);
    let mut fates = seed;
    let dead = killed.after_power_loss(|below| {
        fates = fates.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (fates >> 33) as usize % below
    });
    let (done, synced, writes) = (host.done, host.synced, host.writes.clone());
    for (what, left, least) in [("killed", killed, done), ("host dead", dead, synced)] {
        host.writes.clone_from(&writes);
        host.mount(entry, config, left, least).map_err(|error| format!("{what}: {error}"))?;
        // Life goes on, and ends again.
        host.work(60).map_err(|error| format!("{what}, writing again: {error}"))?;
        let (left, least) = (host.host(|host| host.clone()), host.done);
        host.mount(entry, config, left, least).map_err(|error| format!("{what}, and killed again: {error}"))?;
    }
    Ok(failed.is_err())
}

#[test]
fn a_disk_in_a_file_survives_its_process_and_its_host() {
    let mut broken = Vec::new();
    for entry in table::table::<AnyBytes>() {
        if entry.mount.is_none() || entry.info.durable == Durability::Battery {
            continue;
        }
        let config = Config { cache_entries: 8, ..Config::new(PAGES) };
        let mut cuts = 0;
        for room in (0_u64..).step_by(STEP) {
            match live_and_die(&entry, &config, room, room) {
                Ok(true) => cuts += 1,
                Ok(false) => break,
                Err(what) => {
                    broken.push(format!("{} with room for {room} writes: {what}", entry.info.name));
                    break;
                }
            }
        }
        assert!(cuts > 16 || !broken.is_empty(), "{} was cut {cuts} times", entry.info.name);
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
