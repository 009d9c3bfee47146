//! Tests of the whole store against a model, and of its cost against figures worked out elsewhere.

mod figures;
mod props;
mod spread;
pub(in crate::validity) mod store;
mod traps;
