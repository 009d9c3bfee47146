//! A device from its first command to its last.

use crate::control::{Control, PATIENCE, channel_path, open_channel, params};
use crate::error::UblkError;
use crate::queue::{Queue, Serving};
use blockdev::nbd::{Observer, Stop};
use blockdev::stats::Stats;
use blockdev::{BlockDevice, Log, Severity};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The largest number of a device.
pub const ID_MAX: u32 = (1 << 20) - 1;
/// The most queues that are worth their memory.
pub const QUEUES_MAX: u16 = 4;

/// How long udev may take to make the node of the requests.
const NODE_PATIENCE: Duration = Duration::from_secs(3);
/// How often it is looked whether the device is still there.
const LOOK: Duration = Duration::from_millis(200);
const NAP: Duration = Duration::from_millis(5);

/// How a device is served.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Its number: the device is `/dev/ublkbN`. The driver chooses one if none is given.
    pub id: Option<u32>,
    /// Queues, each with a thread; from 1 to [`QUEUES_MAX`], and no more than processors.
    pub queues: u16,
    /// Each write survives power loss once it is answered: the kernel need not flush.
    pub write_through: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { id: None, queues: 1, write_through: false }
    }
}

/// What the threads of the queues share.
struct Shared {
    device: Arc<dyn BlockDevice>,
    observer: Option<Box<dyn Observer>>,
    log: Arc<dyn Log>,
    stats: Arc<Stats>,
}

/// A device that the kernel shows.
pub struct Server {
    control: Control,
    id: u32,
    path: PathBuf,
    shared: Arc<Shared>,
    /// The node of the requests, until the device has been stopped.
    channel: Option<Arc<File>>,
    threads: Vec<JoinHandle<()>>,
    /// The device was deleted, or cannot be.
    ended: bool,
}

impl Server {
    /// Makes a device appear, and serves it.
    ///
    /// # Errors
    /// The first step that failed. Then the device is gone.
    pub fn start(
        device: Arc<dyn BlockDevice>,
        options: Options,
        observer: Option<Box<dyn Observer>>,
        log: Arc<dyn Log>,
    ) -> Result<Self, UblkError> {
        let params = params(device.as_ref(), options.write_through)?;
        let mut control = Control::open()?;
        let (id, queues) = control.add(options.id, options.queues.clamp(1, QUEUES_MAX))?;
        let path = PathBuf::from(format!("/dev/ublkb{id}"));
        let shared = Arc::new(Shared { device, observer, log, stats: Arc::default() });
        let threads = Vec::new();
        // From here on a failure deletes the device, when this is dropped.
        let mut server = Self { control, id, path, shared, channel: None, threads, ended: false };
        let channel = Arc::new(open_soon(&channel_path(id))?);
        server.channel = Some(Arc::clone(&channel));
        server.control.describe(id, &params)?;
        server.open_queues(&channel, queues)?;
        server.control.start(id)?;
        Ok(server)
    }

    /// The device's node.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What clients asked. Queues count as connections.
    #[must_use]
    pub fn stats(&self) -> Arc<Stats> {
        Arc::clone(&self.shared.stats)
    }

    /// Serves until it is stopped. Then the device is gone, and every request was answered.
    ///
    /// # Errors
    /// [`UblkError::Ended`] if something else ended the device, and the first step of the end that
    /// failed.
    pub fn run(mut self, stop: &Stop) -> Result<(), UblkError> {
        let mut outcome = Ok(());
        while !stop.wait(LOOK) {
            if self.threads.iter().any(JoinHandle::is_finished) {
                outcome = Err(UblkError::Ended(self.path.clone()));
                break;
            }
        }
        let ended = self.end();
        outcome.and(ended)
    }

    fn open_queues(&mut self, channel: &Arc<File>, queues: u16) -> Result<(), UblkError> {
        let (ready, opened) = mpsc::channel();
        for queue in 0..queues {
            let (shared, channel, ready) = (Arc::clone(&self.shared), Arc::clone(channel), ready.clone());
            let thread = thread::Builder::new().name(format!("ublk queue {queue}"));
            let thread = thread.spawn(move || shared.serve(channel, queue, &ready));
            self.threads.push(thread.map_err(|source| UblkError::Queue { queue, source })?);
        }
        let mut opened = opened.iter().take(queues.into());
        opened.try_for_each(|(queue, opened)| opened.map_err(|source| UblkError::Queue { queue, source }))
    }

    /// Stops the device, waits for its queues, and deletes it.
    fn end(&mut self) -> Result<(), UblkError> {
        self.ended = true;
        let stopped = self.control.stop(self.id);
        let deadline = Instant::now() + PATIENCE;
        while !self.threads.iter().all(JoinHandle::is_finished) {
            if stopped.is_err() || Instant::now() >= deadline {
                return stopped.and(Err(UblkError::Busy(self.path.clone())));
            }
            thread::sleep(NAP);
        }
        self.threads.clear();
        // The kernel deletes no device whose node is open.
        self.channel = None;
        let deleted = self.control.delete(self.id)?;
        if !deleted {
            let text = format!("{} is still open somewhere: the kernel forgets it later", self.path.display());
            self.shared.log.line(Severity::Warning, &text);
        }
        stopped
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.ended
            && let Err(error) = self.end()
        {
            self.shared.log.line(Severity::Error, &error.to_string());
        }
    }
}

impl Shared {
    /// The life of a queue's thread.
    fn serve(&self, channel: Arc<File>, number: u16, ready: &Sender<(u16, io::Result<()>)>) {
        // A write that this thread causes must not wait for this device to take older ones. It is a
        // privilege to say so, and the device works without.
        let _ = rustix::process::configure_io_flusher_behavior(true);
        let meter = self.stats.open();
        let serving = Serving {
            device: self.device.as_ref(),
            meter: &meter,
            observer: self.observer.as_deref(),
            log: self.log.as_ref(),
        };
        let (opened, queue) = match Queue::open(channel, number, serving) {
            Ok(queue) => (Ok(()), Some(queue)),
            Err(error) => (Err(error), None),
        };
        // Nobody listens if another queue has failed.
        let _ = ready.send((number, opened));
        if let Some(mut queue) = queue
            && let Err(source) = queue.run()
        {
            let error = UblkError::Queue { queue: number, source };
            self.log.line(Severity::Error, &error.to_string());
        }
        self.stats.close(&meter);
    }
}

/// Opens a node that is about to appear.
fn open_soon(path: &Path) -> Result<File, UblkError> {
    let deadline = Instant::now() + NODE_PATIENCE;
    loop {
        match open_channel(path) {
            Ok(file) => return Ok(file),
            Err(_) if Instant::now() < deadline => thread::sleep(NAP),
            Err(source) => return Err(UblkError::Channel { path: path.to_owned(), source }),
        }
    }
}
