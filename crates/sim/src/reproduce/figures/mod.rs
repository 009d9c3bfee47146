//! The table of figures. One file and one row each; the command line, the documents and the tests follow from the rows.

mod gecko_fig1;
mod gecko_fig10;
mod gecko_fig11;
mod gecko_fig12;
mod gecko_fig13;
mod gecko_fig14;
mod gecko_fig9;
mod janus_fig4;
mod janus_fig5;
mod janus_fig6;
mod janus_fig7;
mod janus_fig8;
mod janus_fig9;

use super::Figure;

/// Every figure, in the order of the papers.
static TABLE: &[Figure] = &[
    gecko_fig1::FIGURE,
    gecko_fig9::FIGURE,
    gecko_fig10::FIGURE,
    gecko_fig11::FIGURE,
    gecko_fig12::FIGURE,
    gecko_fig13::FIGURE,
    gecko_fig14::FIGURE,
    janus_fig4::FIGURE,
    janus_fig5::FIGURE,
    janus_fig6::FIGURE,
    janus_fig7::FIGURE,
    janus_fig8::FIGURE,
    janus_fig9::FIGURE,
];

/// Every figure, in the order of the papers.
#[must_use]
pub fn table() -> &'static [Figure] {
    TABLE
}

/// The row with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Figure> {
    TABLE.iter().find(|figure| figure.name == name)
}
