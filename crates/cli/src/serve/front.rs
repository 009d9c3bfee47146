//! What clients reach a disk through: sockets, or a device of the kernel.

use super::{Opened, bind};
use crate::args::ServeArgs;
use anyhow::{Context, Result, bail};
use blockdev::nbd::{Listener, Observer, Server, ServerOptions, Stop};
use blockdev::stats::Stats;
use blockdev::{BlockDevice, Log};
use std::sync::Arc;

/// A server that is ready for clients.
pub enum Front {
    /// The NBD protocol.
    Nbd(Arc<Server>, Listener),
    /// A block device of this machine.
    #[cfg(target_os = "linux")]
    Ublk(Box<ublk::Server>),
}

/// Where clients find a disk.
pub struct Place {
    /// As the command line says it.
    pub address: String,
    /// As clients take it.
    pub uri: String,
}

impl Front {
    /// Makes the front that is asked for.
    pub fn open(
        args: &ServeArgs,
        opened: &Opened,
        observer: Option<Box<dyn Observer>>,
        log: Arc<dyn Log>,
    ) -> Result<Self> {
        let disk: Arc<dyn BlockDevice> = opened.disk.shared();
        #[cfg(target_os = "linux")]
        if let Some(id) = args.ublk {
            let options = ublk::Options { id: id.0, queues: args.queues, write_through: args.write_through };
            let server = ublk::Server::start(disk, options, observer, log).context("cannot serve over ublk")?;
            return Ok(Self::Ublk(Box::new(server)));
        }
        let Some(address) = &args.nbd else { bail!("no front is named") };
        let listener = bind("--nbd", address)?;
        let options = ServerOptions {
            name: args.name.clone(),
            description: opened.description.clone(),
            connections_max: args.connections as usize,
            ..ServerOptions::default()
        };
        Ok(Self::Nbd(Server::new(disk, options, observer, log), listener))
    }

    /// What clients asked.
    pub fn stats(&self) -> Arc<Stats> {
        match self {
            Self::Nbd(server, _) => server.stats(),
            #[cfg(target_os = "linux")]
            Self::Ublk(server) => server.stats(),
        }
    }

    /// Where clients find it.
    pub fn place(&self) -> Place {
        match self {
            Self::Nbd(_, listener) => Place { address: listener.address().to_string(), uri: listener.address().uri() },
            #[cfg(target_os = "linux")]
            Self::Ublk(server) => {
                let path = server.path().display().to_string();
                Place { address: path.clone(), uri: path }
            }
        }
    }

    /// Serves until it is stopped.
    pub fn run(self, stop: &Stop) -> Result<()> {
        match self {
            Self::Nbd(server, listener) => server.run(listener, stop).context("waiting for connections failed"),
            #[cfg(target_os = "linux")]
            Self::Ublk(server) => server.run(stop).context("serving over ublk failed"),
        }
    }
}
