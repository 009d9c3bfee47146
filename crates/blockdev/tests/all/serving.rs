//! A server in this process, over a disk in memory.

use ftl::{Config, Flash};
use nand::{Capabilities, Dimensions, Geometry, MemNand};
use openftl_blockdev::nbd::{Address, Listener, Server, ServerOptions, Stop};
use openftl_blockdev::{BlockDevice, Disk, DiskOptions, Keeping, Log, Severity};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use table::AnyBytes;

/// Keeps lines of a log.
#[derive(Default)]
pub struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn line(&self, severity: Severity, text: &str) {
        self.0.lock().unwrap().push(format!("{severity}: {text}"));
    }
}

impl Lines {
    pub fn count(&self, part: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|line| line.contains(part)).count()
    }

    /// Waits for a line.
    pub fn wait_for(&self, part: &str) {
        for _ in 0..600 {
            if self.count(part) > 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("no line has `{part}`: {:#?}", self.0.lock().unwrap());
    }
}

pub fn geometry(blocks: u32, page_bytes: u32) -> Geometry {
    let dimensions = Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks,
        pages_per_block: 16,
        page_bytes,
        spare_bytes: 64,
    };
    Geometry::new(dimensions).unwrap()
}

/// An empty disk in memory over so many shards, of 2 MiB visible each.
pub fn memory_disk(ftl: &str, shards: usize, change: impl FnOnce(&mut DiskOptions)) -> Disk<AnyBytes> {
    let row = table::find::<AnyBytes>(ftl).unwrap();
    let make = || {
        let device = MemNand::new(geometry(96, 4096), Capabilities::MODERN);
        (row.format)(Flash::new(Box::new(device)), &Config::new(512)).unwrap()
    };
    let mut options = DiskOptions { empty: true, ..DiskOptions::new(Keeping::Nothing) };
    change(&mut options);
    Disk::new((0..shards).map(|_| make()).collect(), row.info, options).unwrap()
}

pub struct Served {
    folder: tempfile::TempDir,
    pub server: Arc<Server>,
    pub log: Arc<Lines>,
    pub stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub fn new(device: Arc<dyn BlockDevice>, options: ServerOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = Arc::<Lines>::default();
        let server = Server::new(device, options, None, Arc::clone(&log) as Arc<dyn Log>);
        let stop = Arc::new(Stop::new().unwrap());
        let listener = Listener::bind(&Address::Unix(folder.path().join("socket"))).unwrap();
        let (run, stopped) = (Arc::clone(&server), Arc::clone(&stop));
        let thread = Some(std::thread::spawn(move || run.run(listener, &stopped).unwrap()));
        Self { folder, server, log, stop, thread }
    }

    pub fn memory(options: ServerOptions) -> Self {
        Self::new(Arc::new(memory_disk("gecko", 1, |_| {})), options)
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops it and waits until it has ended.
    pub fn end(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
