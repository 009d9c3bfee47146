//! The table of papers. One folder and one row each; the command line, the documents and the tests
//! follow from the rows.

use crate::figure::Figure;
use crate::{asa, ftrm, geckoftl, janus, lftl, rows};

/// The figures of each paper, and of none.
static PAPERS: [&[Figure]; 6] =
    [&geckoftl::FIGURES, &janus::FIGURES, &asa::FIGURES, &lftl::FIGURES, &ftrm::FIGURES, &rows::FIGURES];

/// Every figure, in the order of the papers.
pub fn table() -> impl Iterator<Item = &'static Figure> {
    PAPERS.into_iter().flatten()
}

/// The row with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Figure> {
    table().find(|figure| figure.name == name)
}
