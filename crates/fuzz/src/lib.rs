//! What is done with arbitrary bytes. A fuzzer calls these functions with bytes that it makes up,
//! the tests with those in `fuzz/seeds` and `fuzz/regressions`.
//!
//! Every target takes any bytes. It answers with an error, or panics, if something is wrong with
//! the code under test.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod disk;
mod image;
mod input;
mod mount;
mod operations;
mod text;
mod trace;

pub use operations::operations_on;

/// Something to do with arbitrary bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the fuzz target, and of its folders of inputs.
    pub name: &'static str,
    /// What the bytes are.
    pub summary: &'static str,
    /// Does it; what is wrong, if anything is.
    pub run: fn(&[u8]) -> Result<(), String>,
}

/// Every target.
pub const TARGETS: [Target; 5] = [
    Target {
        name: "operations",
        summary: "an FTL, a device, faults, power cuts and what a host does, checked against a model",
        run: operations::run,
    },
    Target {
        name: "mount",
        summary: "a disk, what is changed on its flash behind its back, then a mount and use",
        run: mount::run,
    },
    Target { name: "image", summary: "a file taken for the image of a device, then a mount and use", run: image::run },
    Target { name: "trace", summary: "a file taken for a trace, packed or not", run: trace::run },
    Target { name: "text", summary: "workloads, profiles and replay ids as a user types them", run: text::run },
];

/// The target with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
