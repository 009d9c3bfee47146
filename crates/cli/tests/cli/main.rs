//! The binary as its users run it.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop there; clippy knows only #[test] functions"
)]

mod commands;
mod common;
mod compare;
mod devices;
mod images;
mod reproduce;
mod serve;
mod sweep;
mod tail;
mod traces;
mod watch;
mod wrong_inputs;
