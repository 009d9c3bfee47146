//! The binary as its users run it.

mod commands;
mod common;
mod compare;
mod traces;
mod wrong_inputs;
