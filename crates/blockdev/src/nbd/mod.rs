//! The NBD protocol: a block device over a socket.
//!
//! The protocol is the one of the [NBD project]: fixed newstyle handshake, simple and structured
//! replies, block status of `base:allocation`. No code of that project is used.
//!
//! 1. [`address`] says where to listen, `listen` does so.
//! 2. `server` accepts connections, and ends them when it is stopped.
//! 3. `handshake` agrees with a client on what it gets.
//! 4. `transmit` reads requests, one connection on one thread, and cuts them into parts. `request`
//!    and `reply` are their bytes.
//! 5. `crew` does the parts, with a thread for each lane of the device, so that requests of one
//!    connection are done side by side.
//! 6. `channel` gathers the replies of a connection, so that a deep queue costs few system calls,
//!    and bounds what is under way.
//!
//! A client cannot use more than its own threads and buffers: one that sends garbage, stops in the
//! middle of a request or does not take its replies is dropped with a line in the log.
//!
//! [NBD project]: https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md

pub mod address;
mod channel;
mod crew;
mod handshake;
mod listen;
pub mod metrics;
pub mod protocol;
mod reply;
mod request;
mod server;
mod socket;
mod transmit;

pub use address::Address;
pub use listen::Listener;
pub use server::{Observer, Seen, Server, ServerOptions, Stop};
