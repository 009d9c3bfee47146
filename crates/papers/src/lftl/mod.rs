//! LFTL (Srimugunthan, Gopinath and Yasa): its tables and figures, in virtual time.
//!
//! The engine and the threads of the crate `lftl` run on the clock of `lftl::clock`, over the
//! paper's card. [`setting`] has the card and the times that the paper does not give.

mod fig6;
mod setting;
mod table1;
mod table2;
mod table4;
mod table5;

use crate::figure::Figure;

/// The paper, for every figure of it.
const SOURCE: &str = "Srimugunthan, Gopinath and Yasa: LFTL, a multi-threaded FTL for a parallel IO flash card";

/// Every figure, in the order of the paper.
pub(crate) static FIGURES: [Figure; 5] = [table1::FIGURE, table2::FIGURE, table4::FIGURE, table5::FIGURE, fig6::FIGURE];
