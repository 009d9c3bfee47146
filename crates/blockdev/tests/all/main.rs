//! A served disk, from outside.

#![allow(clippy::unwrap_used)]

mod banked;
mod client;
mod cuts;
mod disk;
mod hostile;
mod protocol;
mod serving;
mod side_by_side;
