//! Every FTL and every part of one over simulated flash.
//!
//! One binary: each further one compiles every FTL again.

mod aftl;
mod btree;
mod checkpoints;
mod damaged_checkpoints;
mod effort;
mod flat;
mod gecko_thin;
mod gecko_torn;
mod given_up;
mod groups;
mod janus_options;
mod janus_thin;
mod laws;
mod log_blocks;
mod lost_pages;
mod mounting;
mod nftl;
mod no_alloc;
mod refresh;
mod settings;
mod trims;
mod validity_stores;
mod wear;
mod worn_out;
