//! Why a figure could not be made.

use sim::SimError;

/// Why a figure could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PaperError {
    /// A run could not be planned or finished.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A measurement of LFTL failed.
    #[error(transparent)]
    Lftl(#[from] ::lftl::LftlError),
    /// A result was asked to be kept and was not.
    #[error("the result of a run cannot be kept: {reason}")]
    Keep {
        /// Why, and where.
        reason: String,
    },
}
