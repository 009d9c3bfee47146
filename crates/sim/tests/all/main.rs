//! Whole runs, and the figures that are made of them.

mod common;
mod reproduce;
mod runs;
mod wrong;
