//! The orders in which a mount looks at pages that it found. Each is compiled once, whatever the
//! device and the parts of the FTL.

use super::survey::FoundPage;

/// The page programmed last comes first.
pub(crate) fn newest_first(pages: &mut [FoundPage]) {
    pages.sort_unstable_by_key(|(_, spare)| u64::MAX - spare.seq);
}

/// The page programmed first comes first.
pub(crate) fn oldest_first(pages: &mut [FoundPage]) {
    pages.sort_unstable_by_key(|(_, spare)| spare.seq);
}

/// Pages by what they hold; of several versions the one programmed last comes first.
pub(crate) fn by_tag(pages: &mut [FoundPage]) {
    pages.sort_unstable_by_key(|(_, spare)| (spare.tag, u64::MAX - spare.seq));
}

/// Pages by where they are.
pub(crate) fn by_place(pages: &mut [FoundPage]) {
    pages.sort_unstable_by_key(|(ppn, _)| *ppn);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nand::{Flags, PageKind, Ppn, Spare};

    #[test]
    fn of_several_versions_the_last_comes_first() {
        let page = |ppn, tag, seq| {
            let spare =
                Spare { kind: PageKind::User, tag, seq, erase_count: 0, erased_at: 0, aux: 0, flags: Flags::NONE };
            (Ppn(ppn), spare)
        };
        let pages = [page(2, 1, 7), page(0, 3, 9), page(1, 1, 8)];
        let places = |sort: fn(&mut [FoundPage])| {
            let mut sorted = pages;
            sort(&mut sorted);
            sorted.map(|(ppn, _)| ppn.0)
        };
        assert_eq!(places(newest_first), [0, 1, 2]);
        assert_eq!(places(oldest_first), [2, 1, 0]);
        assert_eq!(places(by_tag), [1, 2, 0]);
        assert_eq!(places(by_place), [0, 1, 2]);
    }
}
