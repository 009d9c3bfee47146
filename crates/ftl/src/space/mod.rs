//! Flash as pages to be filled: which block is what ([`blocks`]), programming the next page of a
//! stream, whatever fails ([`core`]), and how old contents are ([`age`]). Mappings and validity
//! stores in flash write their pages through it.

pub mod age;
pub mod blocks;
mod candidates;
pub mod core;
pub mod deaths;
