//! Connections: accepted, bounded, and ended together.

use super::channel::Channel;
use super::crew::Crew;
use super::handshake::Offer;
use super::listen::Listener;
use super::socket::{Gone, Input, Socket};
use super::transmit::Transmission;
use crate::contract::BlockDevice;
use crate::log::{Log, Severity};
use crate::stats::{Op, Stats};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How a server treats its clients.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Name of the export; a client that gives none gets it too.
    pub name: String,
    /// What it is, for clients that ask.
    pub description: String,
    /// Connections at once; more are refused.
    pub connections_max: usize,
    /// How long a client may stop within a request, or take no byte of its replies.
    pub patience: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            name: "disk".to_owned(),
            description: "a flash translation layer of OpenFTL".to_owned(),
            connections_max: 64,
            patience: Duration::from_secs(30),
        }
    }
}

/// A request of some connection.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// What is asked.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; 0 for a flush.
    pub bytes: u32,
    /// It is to survive power loss once it is answered.
    pub fua: bool,
    /// The pages may be forgotten: a trim, or zeros that may take no space.
    pub forgets: bool,
    /// When it had arrived.
    pub at: Instant,
}

/// Sees every request that lies on the device when it arrives, before it is done.
pub trait Observer: Send + Sync {
    /// Looks at a request.
    fn request(&self, seen: &Seen);
}

/// Stops a server from another thread.
#[derive(Debug)]
pub struct Stop {
    sender: UnixStream,
    receiver: UnixStream,
}

impl Stop {
    /// A handle that stops nothing yet.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn new() -> io::Result<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        Ok(Self { sender, receiver })
    }

    /// Stops every server that runs with this handle, or will.
    pub fn stop(&self) {
        // It fails if that was said so often that nobody can have missed it.
        let _ = (&mut &self.sender).write(&[0]);
    }

    /// Waits until it is stopped, or so long; answers whether it was.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let mut fds = [PollFd::new(&self.receiver, PollFlags::IN)];
        let timeout = rustix::event::Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
    }
}

/// A device served to whoever connects.
pub struct Server {
    device: Arc<dyn BlockDevice>,
    crew: Arc<Crew>,
    options: ServerOptions,
    observer: Option<Box<dyn Observer>>,
    log: Arc<dyn Log>,
    stats: Arc<Stats>,
    stopping: AtomicBool,
    /// Connections by their numbers.
    open: Mutex<BTreeMap<u64, Arc<Socket>>>,
    closed: Condvar,
}

impl Server {
    /// A server that listens to nobody yet.
    #[must_use]
    pub fn new(
        device: Arc<dyn BlockDevice>,
        options: ServerOptions,
        observer: Option<Box<dyn Observer>>,
        log: Arc<dyn Log>,
    ) -> Arc<Self> {
        Arc::new(Self {
            crew: Arc::new(Crew::new(Arc::clone(&device), Arc::clone(&log))),
            device,
            options,
            observer,
            log,
            stats: Arc::default(),
            stopping: AtomicBool::new(false),
            open: Mutex::default(),
            closed: Condvar::new(),
        })
    }

    /// What clients asked so far.
    #[must_use]
    pub fn stats(&self) -> Arc<Stats> {
        Arc::clone(&self.stats)
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.device
    }

    /// Serves until it is stopped. Then the socket is gone, requests that had arrived are answered,
    /// and every connection has ended; a client that does not take its replies is not waited for
    /// longer than its patience. The device is not flushed.
    ///
    /// # Errors
    /// Those of starting threads and of waiting for connections.
    pub fn run(self: &Arc<Self>, listener: Listener, stop: &Stop) -> io::Result<()> {
        let threads = self.crew.start()?;
        let mut number = 0;
        let waited = loop {
            match self.wait(&listener, stop) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
            match listener.accept() {
                Ok(socket) => {
                    number += 1;
                    self.welcome(number, socket);
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    self.log.line(Severity::Warning, &format!("a connection was not accepted: {error}"));
                    // Descriptors may have run out: some come back when clients go.
                    if stop.wait(Duration::from_millis(200)) {
                        break Ok(());
                    }
                }
            }
        };
        drop(listener);
        self.end_all();
        self.crew.stop();
        for thread in threads {
            // A defect of the program is an error of the request that met it, and ends no thread.
            let _ = thread.join();
        }
        waited
    }

    /// Waits for a connection (`true`) or for being stopped.
    fn wait(&self, listener: &Listener, stop: &Stop) -> io::Result<bool> {
        loop {
            let mut fds = [PollFd::new(listener, PollFlags::IN), PollFd::new(&stop.receiver, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) if !fds[1].revents().is_empty() => return Ok(false),
                Ok(_) if !fds[0].revents().is_empty() => return Ok(true),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Socket>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn welcome(self: &Arc<Self>, number: u64, socket: Socket) {
        let refuse = |why: String| self.log.line(Severity::Warning, &format!("client {number} was refused: {why}"));
        let most = self.options.connections_max;
        if self.connections().len() >= most {
            return refuse(format!("{most} are connected, which is the most that are served at once"));
        }
        if let Err(error) = socket.set_patience(self.options.patience) {
            return refuse(error.to_string());
        }
        let socket = Arc::new(socket);
        self.connections().insert(number, Arc::clone(&socket));
        let server = Arc::clone(self);
        let thread = thread::Builder::new().name(format!("client {number}")).spawn(move || {
            let gone = server.serve(&socket);
            // A client that was dropped hears of it, although the list still holds its socket.
            socket.shutdown(Shutdown::Both);
            if let Gone::Dropped(why) = gone {
                server.log.line(Severity::Warning, &format!("client {number} was dropped: {why}"));
            }
            server.connections().remove(&number);
            server.closed.notify_all();
        });
        if let Err(error) = thread {
            self.connections().remove(&number);
            refuse(format!("there is no thread for it ({error})"));
        }
    }

    fn serve(&self, socket: &Arc<Socket>) -> Gone {
        let mut input = Input::new(socket, &self.stopping, self.options.patience);
        let offer = Offer {
            device: self.device.as_ref(),
            name: &self.options.name,
            description: &self.options.description,
            patience: self.options.patience,
        };
        let agreed = match offer.shake(socket, &mut input) {
            Ok(agreed) => agreed,
            Err(gone) => return gone,
        };
        let meter = self.stats.open();
        let channel = Arc::new(Channel::new(Arc::clone(socket), agreed, Arc::clone(&meter)));
        let observer = self.observer.as_deref();
        let gone = Transmission { crew: &self.crew, channel, observer, scratch: Vec::new() }.run(&mut input);
        self.stats.close(&meter);
        gone
    }

    /// Lets every connection answer what has arrived, and waits until all have ended.
    fn end_all(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for (how, patience) in [(Shutdown::Read, self.options.patience), (Shutdown::Both, self.options.patience)] {
            let deadline = Instant::now() + patience;
            self.connections().values().for_each(|socket| socket.shutdown(how));
            let mut open = self.connections();
            while !open.is_empty() {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                open = self.closed.wait_timeout(open, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        let left = self.connections().len();
        if left > 0 {
            let text = format!("{left} connection(s) did not end; what they still do is not saved");
            self.log.line(Severity::Error, &text);
        }
    }
}
