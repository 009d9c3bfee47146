//! GeckoFTL (Dayan, Bonnet and Idreos, SIGMOD 2016): its figures and its formulas.
//!
//! The table of figures has one file and one row each.

mod common;
mod fig1;
mod fig10;
mod fig11;
mod fig12;
mod fig13;
mod fig14;
mod fig9;
pub mod model;

use crate::figure::Figure;

/// Every figure, in the order of the paper.
pub(crate) static FIGURES: [Figure; 7] =
    [fig1::FIGURE, fig9::FIGURE, fig10::FIGURE, fig11::FIGURE, fig12::FIGURE, fig13::FIGURE, fig14::FIGURE];
