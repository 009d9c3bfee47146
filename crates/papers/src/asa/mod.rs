//! ASA-FTL (Xie and Chen, CCGrid 2014, a poster): its figure, and its placement among its rivals.
//!
//! The table of figures has one file and one row each.

mod fig2;
mod placements;

use crate::figure::Figure;

/// Every figure, in the order of the poster; the last is not in it.
pub(crate) static FIGURES: [Figure; 2] = [fig2::FIGURE, placements::FIGURE];
