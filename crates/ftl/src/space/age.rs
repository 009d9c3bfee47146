//! How old the contents of a page are, in its spare area: a copy is younger than what it holds.

use nand::Spare;

/// In the auxiliary field of a page of metadata that does not say how old its contents are: which
/// pages count was not settled when the page was programmed ([`Core::settling`]).
///
/// [`Core::settling`]: super::core::Core::settling
pub const UNSETTLED: u32 = 1 << 31;

/// In the auxiliary field of a translation page that does not say how old its contents are: the
/// page was used often when it was programmed (FTRM, section 4.2.1).
pub const HOT: u32 = 1 << 30;

/// Where the auxiliary field says how old its contents are: when they were written. The largest age
/// there is says nothing.
#[must_use]
pub const fn aged(spare: &Spare) -> u64 {
    if spare.aux == u32::MAX { 0 } else { spare.seq.saturating_sub(spare.aux as u64) }
}

/// The auxiliary field of a page with this sequence number that says so.
#[must_use]
pub fn age(seq: u64, written_at: u64) -> u32 {
    u32::try_from(seq.saturating_sub(written_at)).unwrap_or(u32::MAX)
}
