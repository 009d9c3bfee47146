//! Cuts power at every flash operation of every flash translation layer, and checks what is left.
//!
//! Reading order: the model (`model.rs`: what a read may return), the tap (`tap.rs`: the image that
//! a cut would leave, for every operation of one run), the bench and the explorer (`bench.rs`,
//! `explorer.rs`: what is done with an image), then what to explore (`run.rs`, [`Options`],
//! `drawn.rs`), how a failure is made small (`shrink.rs`) and kept as an id (`case.rs`), and the
//! number for all that an FTL did (`trail.rs`).
//!
//! ```
//! use openftl_crash::{Mode, Options, run};
//!
//! let ftls = vec!["page".into()];
//! let options = Options { ftls, mode: Mode::Log, cuts: 300, one_in: 12, ..Options::default() };
//! let report = run(&options, &mut |_| {})?;
//! assert_eq!(report.ftls[0].cut_points, 300);
//! assert!(report.is_clean(), "{:?}", report.ftls[0].failures);
//! # Ok::<(), openftl_crash::OptionsError>(())
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bench;
mod case;
mod drawn;
mod example;
mod explorer;
mod faults;
mod fuzz;
mod model;
mod options;
mod other;
mod quiet;
mod report;
mod rng;
mod run;
mod shape;
mod shared;
mod shrink;
mod stamps;
mod story;
mod tap;
mod trail;
mod workload;

pub use case::ReplayError;
pub use example::example;
pub use faults::Fault;
pub use fuzz::{Operations, check_id, make_id};
pub use options::{Mode, Options, OptionsError};
pub use report::{Failure, FtlReport, Report, Tally, Trace, outcome_name};
pub use run::{Progress, replay, replay_on, run, run_on, trace};
pub use shape::{DRAWN, SHAPES, Shape, find as find_shape, shape_names};
pub use shared::Shared;
pub use stamps::Stamps;
pub use story::{Effort, Event, Mounted, MountedStep, PurposeEffort};
pub use tap::Tapped;
pub use workload::{Step, generate};

/// The device that the explorer's table of FTLs is made for.
pub type Device = Shared<Tapped>;
