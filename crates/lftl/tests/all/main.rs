//! Tests of the engine from outside; compiled with `--cfg shuttle`, of the order in which its
//! threads may run.
#![allow(missing_docs, clippy::unwrap_used)]

#[cfg(not(shuttle))]
mod common;
#[cfg(not(shuttle))]
mod crash;
#[cfg(not(shuttle))]
mod engine;
#[cfg(not(shuttle))]
mod host;
#[cfg(not(shuttle))]
mod large;
#[cfg(not(shuttle))]
mod remedies;
#[cfg(shuttle)]
mod schedules;
#[cfg(not(shuttle))]
mod server;
