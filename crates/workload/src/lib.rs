//! What is asked of a device: synthetic workloads, replayed traces, and profiles fitted to traces.
//!
//! Everything ends in one trait, [`Source`], which fills batches of [`Request`]s. A [`Spec`] such
//! as `zipf:theta=0.99,reads=30` names a synthetic workload; [`trace::open`] reads a recorded one
//! and
//! [`trace::Replay`] plays it back on a device of another size. [`workloads`] and [`formats`] are
//! the two tables from which help texts, documentation and tests are made.
//!
//! ```
//! use openftl_workload::{Op, Request, Spec};
//!
//! let spec: Spec = "zipf:theta=0.99,reads=30,size=4KiB".parse()?;
//! let mut source = spec.build(1 << 30, 4096, 42)?;
//! let mut batch = [Request::default(); 256];
//! assert_eq!(source.fill(&mut batch)?, 256);
//! assert!(batch.iter().any(|r| r.op == Op::Read));
//! # Ok::<(), openftl_workload::WorkloadError>(())
//! ```
//!
//! Reading order: `request`, `stream` (how a synthetic request is drawn), `synthetic/` (where it
//! goes), `filesystem` (what a file system makes of it), `trace/`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod arrivals;
mod error;
mod filesystem;
mod param;
mod permutation;
mod pick;
mod profile;
mod request;
mod revisits;
mod spec;
mod stream;
mod synthetic;
pub mod trace;
mod units;

pub use arrivals::Poisson;
pub use error::WorkloadError;
pub use param::{Kind, Parameter};
pub use permutation::Permutation;
pub use profile::{Arrivals, Popularity, Profile, Side, SizeShare, published as published_profiles};
pub use request::{Op, Request, Source};
pub use revisits::{REVISITS_VERSION, Revisits, RunRequests};
pub use spec::Spec;
pub use synthetic::{WorkloadEntry, common_parameters, workloads};
pub use trace::{FormatEntry, formats};
