//! A served disk, from outside.

mod client;
mod cuts;
mod disk;
mod hostile;
mod protocol;
mod serving;
