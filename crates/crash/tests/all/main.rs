//! The explorer: what it finds in FTLs that are broken, and that it finds nothing in the others.

mod broken;
mod canary;
mod regressions;
mod table;
