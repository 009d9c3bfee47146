//! Janus-FTL (Kwon, Kim, Choi, Lee and Noh, EMSOFT 2010): its figures.
//!
//! The table of figures has one file and one row each. The cost model of section 4 is
//! `ftl::engine::hybrid::cost`: the FTL itself decides by it.

mod fig4;
mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod fig9;
mod loads;
mod times;

use crate::figure::Figure;

/// Every figure, in the order of the paper.
pub(crate) static FIGURES: [Figure; 6] =
    [fig4::FIGURE, fig5::FIGURE, fig6::FIGURE, fig7::FIGURE, fig8::FIGURE, fig9::FIGURE];
