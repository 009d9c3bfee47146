//! Tests of the engine from outside.
#![cfg(not(shuttle))]
#![allow(missing_docs, clippy::unwrap_used)]

mod common;
mod crash;
mod engine;
