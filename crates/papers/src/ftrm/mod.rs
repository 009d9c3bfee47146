//! FTRM (Mativenga, Hamandawana, Chung and Kim, Electronics 2020): what its flags cost, and what
//! its mounts cost and save.
//!
//! The table of figures has one file and one row each.

mod fig4;
mod fig5;
mod fig6;
mod responses;
mod setting;

use crate::figure::Figure;

/// Every figure, in the order of the paper.
pub(crate) static FIGURES: [Figure; 3] = [fig4::FIGURE, fig5::FIGURE, fig6::FIGURE];
