//! The explorer: what it finds in FTLs that are broken, and that it finds nothing in the others.

mod behaviour;
mod broken;
mod canary;
mod fading_trims;
mod hosts;
mod regressions;
mod table;
