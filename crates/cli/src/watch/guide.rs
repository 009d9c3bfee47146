//! The guide: a chapter for each structure, and when a run comes to what it is about.

use super::seen::Seen;
use super::show::{Moved, Show};
use ftl::{OpKind, Purpose};

/// A chapter.
#[derive(Clone, Copy, Debug)]
pub struct Chapter {
    /// What it is about.
    pub title: &'static str,
    /// A few sentences.
    pub text: &'static str,
    /// What has to come before it is shown.
    pub comes: Comes,
    /// The structure that the FTL must have, by its name in RAM.
    needs: Option<&'static str>,
}

/// What a run has to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comes {
    /// Nothing: it is so at once.
    Now,
    /// So many requests were done.
    Requests(u64),
    /// A logical page was written again.
    Rewrite,
    /// An operation for a purpose.
    Op(OpKind, Purpose),
    /// Several operations of this kind for this purpose within a request.
    Many(OpKind, Purpose),
    /// Logarithmic Gecko's buffer holds so many entries.
    Noted(u32),
    /// A run of level 1 or more.
    Merged,
    /// A block was erased without copying anything before, for this purpose.
    Erase(Purpose),
}

const CHAPTERS: &[Chapter] = &[
    Chapter {
        title: "Flash",
        text: "Each row of letters is a block of flash, each letter a page. A page is programmed once, and in order. \
               Only a whole block can be erased, which wears it. So a page cannot be overwritten, and the flash \
               translation layer (FTL) makes a disk of this: it decides where each write goes. Press r for a request, \
               o for a flash operation, n for the next chapter.",
        comes: Comes::Now,
        needs: None,
    },
    Chapter {
        title: "Writing",
        text: "Every write of the host goes to the next page of an open block, wherever the host thinks it writes. \
               Open blocks are marked: h takes what the host writes, other letters take what the FTL itself writes. \
               The mapping table has to remember where each logical page (LPN) is now.",
        comes: Comes::Requests(12),
        needs: None,
    },
    Chapter {
        title: "Dead pages",
        text: "The host wrote a logical page again. The new copy is on another page, and the old one is dead (x): \
               nobody needs it, but it takes space until its block is erased. The FTL has to know which pages are \
               dead, or it would copy them for nothing. That knowledge is called page validity.",
        comes: Comes::Rewrite,
        needs: None,
    },
    Chapter {
        title: "The cache of the mapping table",
        text: "A table of 4 B a page takes 1 GiB of RAM for 1 TiB of disk. So the table is kept in flash, in \
               translation pages (T), and RAM caches a few entries. A dirty entry is newer than flash. When a \
               dirty entry leaves the cache, its translation page is read, changed and programmed anew: with every \
               dirty entry of that page at once. The old translation page is dead (t).",
        comes: Comes::Op(OpKind::Program, Purpose::Translation),
        needs: Some("cmt"),
    },
    Chapter {
        title: "Gecko's buffer",
        text: "The usual record of dead pages is a bitmap in RAM (PVB), a bit a page: 32 MiB for 1 TiB, more than all \
               else that DFTL holds. GeckoFTL keeps the record in flash, as Logarithmic Gecko. A dead page is first \
               noted in a buffer in RAM of one page: an entry names a part of a block and has a bit for each page of \
               it. Noting costs no flash operation.",
        comes: Comes::Noted(10),
        needs: Some("gecko_buffer"),
    },
    Chapter {
        title: "A run",
        text: "The buffer is full. It is sorted and written to flash as a run (V): one program for some eighty dead \
               pages. A bitmap in flash would have been read and programmed for each of them. RAM keeps for each \
               page of a run only where it lies and the first block in it: the run directories.",
        comes: Comes::Op(OpKind::Program, Purpose::Validity),
        needs: Some("gecko_buffer"),
    },
    Chapter {
        title: "Runs are merged",
        text: "Runs of like size are merged into one of the next level, as in a log-structured merge tree. Level i \
               holds up to T times as much as level i-1, so there are few runs: their number grows with the \
               logarithm of the device. Entries of the same block become one, and what an erase made obsolete is \
               dropped. The pages of the old runs are dead (v).",
        comes: Comes::Merged,
        needs: Some("gecko_buffer"),
    },
    Chapter {
        title: "Garbage collection",
        text: "Free blocks are short. The victim (marked >) is the block that seems to have the fewest live pages. Its \
               live pages (#) are copied to the open block g, then it is erased. These copies are what writing costs \
               beyond the host's own pages: write amplification, in the top line. More free space makes victims \
               emptier, and copies fewer.",
        comes: Comes::Op(OpKind::Copy, Purpose::Gc),
        needs: None,
    },
    Chapter {
        title: "Asking Gecko",
        text: "Before it copies, the collector asks which pages of the victim are dead. Gecko looks into the buffer \
               and then into the runs, from the youngest to the oldest. It reads one page of each (validity_query), and stops at an \
               entry that says the block was erased. A query is rare: once a block. A report of a dead page is \
               frequent: once a write. So reports are made cheap, and queries may cost a few reads.",
        comes: Comes::Op(OpKind::Read, Purpose::ValidityQuery),
        needs: Some("gecko_buffer"),
    },
    Chapter {
        title: "Lazy reports",
        text: "A write whose entry is not cached does not read the old one: GeckoFTL finds the dead page only when \
               the translation page is synchronised. Until then the FTL counts it as live: `not known yet`, on the \
               right. A collector that meets such a page reads its spare area, asks the cache, and leaves it behind.",
        comes: Comes::Many(OpKind::SpareRead, Purpose::Gc),
        needs: Some("gecko_buffer"),
    },
    Chapter {
        title: "Metadata is not collected",
        text: "Translation pages and runs change so often that their blocks soon hold no live page. GeckoFTL waits \
               for that and erases them without a copy. DFTL lets the victim policy choose them like host data, and \
               pays for copies (translation_gc).",
        comes: Comes::Erase(Purpose::TranslationGc),
        needs: Some("gecko_buffer"),
    },
    Chapter {
        title: "What it comes to",
        text: "Look at the RAM by structure on the right. With more capacity, pvb and the table grow with it, a bit and \
               4 B a page. Gecko's buffer stays one page, and its directories grow by 8 B for each page of a run: \
               a fraction of the bitmap. openftl compare --ftl page,dftl,gecko puts \
               figures beside each other. After power loss GeckoFTL finds everything again from flash: \
               openftl watch --replay gecko shows that.",
        comes: Comes::Requests(2500),
        needs: Some("gecko_buffer"),
    },
    Chapter {
        title: "What it comes to",
        text: "Look at the RAM by structure on the right: what grows with the device is what limits an FTL. Programs by \
               purpose say what each page of the host costs in flash. openftl watch shows GeckoFTL, which keeps \
               both the table and the record of dead pages in flash. openftl compare puts figures beside each other.",
        comes: Comes::Requests(2500),
        needs: None,
    },
];

/// The chapters for an FTL that has these structures.
pub fn chapters(seen: &Seen) -> Vec<&'static Chapter> {
    let fits = |chapter: &&Chapter| chapter.needs.is_none_or(|name| seen.level(name).is_some());
    let mut all: Vec<&Chapter> = CHAPTERS.iter().filter(fits).collect();
    let last = all.iter().position(|chapter| chapter.comes == CHAPTERS[CHAPTERS.len() - 1].comes);
    all.truncate(last.map_or(all.len(), |last| last + 1));
    all
}

impl Comes {
    /// Whether a move brought it.
    pub fn is_here(self, show: &Show, moved: Moved) -> bool {
        let op = match moved {
            Moved::Op(op) => Some(op),
            Moved::Nothing | Moved::End => None,
        };
        let is = |kind, purpose| op.is_some_and(|op| op.kind == kind && op.purpose == purpose);
        let ops = || show.told.back().map_or(&[][..], |told| &told.ops[..]);
        match self {
            Self::Now => true,
            Self::Requests(count) => show.requests >= count && show.between_requests(),
            Self::Rewrite => show.between_requests() && show.has_dead_host_page(),
            Self::Op(kind, purpose) => is(kind, purpose),
            Self::Many(kind, purpose) => {
                is(kind, purpose) && ops().iter().filter(|op| op.kind == kind && op.purpose == purpose).count() > 3
            }
            Self::Noted(entries) => show.seen.level("gecko_buffer").is_some_and(|level| level.entries >= entries),
            Self::Merged => show.between_requests() && show.seen.runs.iter().any(|run| run.level > 0),
            Self::Erase(purpose) => is(OpKind::Erase, purpose),
        }
    }
}
