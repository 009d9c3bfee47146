//! Every FTL of this code base beside every other: no paper's, and where the next work starts from.
//!
//! The table of figures has one file and one row each.

mod loads;
mod measured;
mod table;

use crate::figure::Figure;

/// Every figure.
pub(crate) static FIGURES: [Figure; 1] = [table::FIGURE];
