//! Listening, and what a Unix socket leaves in the file system.

use super::address::Address;
use super::socket::Socket;
use rustix::fs::Mode;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// A socket that clients connect to. Dropping it removes the file of a Unix socket.
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
    address: Address,
}

#[derive(Debug)]
enum Kind {
    Unix {
        listener: UnixListener,
        path: PathBuf,
        /// Device and inode of the socket's file.
        file: (u64, u64),
    },
    Tcp(TcpListener),
}

impl Listener {
    /// Listens. A Unix socket is only for the user that made it; a file that a dead server left is
    /// replaced.
    ///
    /// # Errors
    /// Those of the operating system; [`io::ErrorKind::AddrInUse`] if another server listens there;
    /// [`io::ErrorKind::AlreadyExists`] if there is a file that is no socket.
    pub fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Unix(path) => {
                remove_stale(path)?;
                let listener = bind_private(path)?;
                // Nobody blocks who lost a connection between being told of it and accepting it.
                listener.set_nonblocking(true)?;
                let file = identity(path)?;
                let kind = Kind::Unix { listener, path: path.clone(), file };
                Ok(Self { kind, address: address.clone() })
            }
            Address::Tcp(socket) => {
                let listener = TcpListener::bind(socket)?;
                rustix::net::listen(&listener, BACKLOG)?;
                listener.set_nonblocking(true)?;
                let address = Address::Tcp(listener.local_addr()?);
                Ok(Self { kind: Kind::Tcp(listener), address })
            }
        }
    }

    /// Where it listens; of TCP port 0, the port that was chosen.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn accept(&self) -> io::Result<Socket> {
        match &self.kind {
            Kind::Unix { listener, .. } => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                Ok(Socket::Unix(stream))
            }
            Kind::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Unix { listener, .. } => listener.as_fd(),
            Kind::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Kind::Unix { path, file, .. } = &self.kind
            && identity(path).is_ok_and(|found| found == *file)
        {
            // If it cannot be removed, the next server replaces it.
            let _ = fs::remove_file(path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Removes a socket that nobody listens to.
fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let text = "there is a file of that name that is no socket; choose another name or remove it";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another server listens there; stop it or choose another name",
        )),
    }
}

/// Binds so that the file has the owner's rights from the beginning.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let before = rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = bound?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}
