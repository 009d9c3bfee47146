//! Figures that are made whole.

mod figures;
