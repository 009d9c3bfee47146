//! Where a server listens, as a user says it.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// `unix:PATH`, `tcp:HOST:PORT`, or `tcp:PORT` for this machine only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp(SocketAddr),
}

impl Address {
    /// Whether others than this machine can reach it.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Tcp(address) if !address.ip().is_loopback())
    }

    /// As other programs name an NBD export there.
    #[must_use]
    pub fn uri(&self) -> String {
        match self {
            Self::Unix(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                format!("nbd+unix:///?socket={}", path.display())
            }
            Self::Tcp(address) => format!("nbd://{address}"),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "give unix:PATH, tcp:PORT or tcp:HOST:PORT, as in unix:/tmp/disk.sock or tcp:10809";
        match text.split_once(':') {
            Some(("unix", "")) => Err(format!("the path of the socket is missing; {form}")),
            Some(("unix", path)) => Ok(Self::Unix(path.into())),
            Some(("tcp", port)) if port.bytes().all(|c| c.is_ascii_digit()) => match port.parse() {
                Ok(port) => Ok(Self::Tcp(SocketAddr::from(([127, 0, 0, 1], port)))),
                Err(_) => Err(format!("'{port}' is no port, which is a number up to 65535; {form}")),
            },
            Some(("tcp", address)) => {
                let found = address.to_socket_addrs().map_err(|error| format!("'{address}': {error}; {form}"))?;
                found.into_iter().next().map(Self::Tcp).ok_or_else(|| format!("'{address}' has no address; {form}"))
            }
            _ => Err(format!("'{text}' is no address; {form}")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_bad_ones_named() {
        assert_eq!("unix:/tmp/s".parse(), Ok(Address::Unix("/tmp/s".into())));
        for (text, shown, remote) in [
            ("tcp:10809", "tcp:127.0.0.1:10809", false),
            ("tcp:127.0.0.1:1", "tcp:127.0.0.1:1", false),
            ("tcp:[::1]:7", "tcp:[::1]:7", false),
            ("tcp:0.0.0.0:7", "tcp:0.0.0.0:7", true),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.to_string().as_str(), address.is_remote()), (shown, remote), "{text}");
        }
        for text in ["", "unix:", "tcp:", "tcp:65536", "tcp:host", "udp:1", "/tmp/s"] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.contains("unix:PATH"), "{text}: {error}");
        }
    }
}
