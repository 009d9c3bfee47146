//! Every FTL and every part of one over simulated flash.
//!
//! One binary: each further one compiles every FTL again.

mod aftl;
mod apart;
mod bounds;
mod btree;
mod by_bank;
mod checkpoints;
mod damaged_checkpoints;
mod documents;
mod effort;
mod flags;
mod flat;
mod gecko_thin;
mod gecko_torn;
mod given_up;
mod groups;
mod inspecting;
mod janus_options;
mod janus_thin;
mod lanes;
mod laws;
mod log_blocks;
mod lost_pages;
mod mounting;
mod nftl;
mod no_alloc;
mod refresh;
mod settings;
mod trims;
mod unsaved;
mod validity_stores;
mod wear;
mod worn_out;

use nand::geometry::Dimensions;
use nand::{Capabilities, Faulty, Geometry, SimNand};
use openftl_ftl::Setting;
use openftl_ftl::ftls::{self, Entry, Info};
use openftl_ftl::validity::Small;

/// A device of one die.
fn one_die(blocks: u32, pages_per_block: u32, page_bytes: u32) -> Geometry {
    let dimensions = Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks,
        pages_per_block,
        page_bytes,
        spare_bytes: 32,
    };
    Geometry::new(dimensions).expect("a device within the bounds of addresses")
}

/// What a device has to be able to do for an FTL.
fn capabilities(info: &Info) -> Capabilities {
    Capabilities { program_order: info.program_order, spare_reprograms: info.flags, ..Capabilities::MODERN }
}

/// The device of tests that do not find their FTLs compiled: each further kind of device would
/// compile every FTL again.
type Device = Faulty<SimNand>;

/// Every FTL, compiled once for all page-validity stores.
fn every_ftl() -> Vec<Entry<Device>> {
    ftls::table_of::<Device, Small>()
}

/// The FTL with this name.
fn ftl_named(name: &str) -> Option<Entry<Device>> {
    every_ftl().into_iter().find(|entry| entry.info.name == name)
}

/// Every FTL with log blocks: those that keep their maps in checkpoints.
fn log_block_ftls() -> impl Iterator<Item = Entry<Device>> {
    every_ftl().into_iter().filter(|entry| entry.info.honours(Setting::Maps))
}
