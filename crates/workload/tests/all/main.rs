//! Requests that are generated, and requests that are read from traces.

mod formats;
mod profiles;
mod properties;
mod real_traces;
mod replay;
mod synthetic;
