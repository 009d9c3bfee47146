//! The table of flash translation layers. One file and one row each; help, documentation, law tests
//! and benchmarks follow from the rows.

mod aftl;
mod asa;
mod bast;
mod block;
mod blockset;
mod dftl;
mod fast;
mod flagship;
mod ftrm;
mod ftrm_base;
mod ftrm_baseline;
mod ftrm_victim;
mod gecko;
mod ib;
mod janus;
mod janus_fixed;
mod lazy;
mod mapblock;
mod nftl;
mod over_ring;
mod page;
mod reconfigurable;
mod superblock;
mod transblock;
mod uftl;
mod vftl;

use crate::bound::{Bound, Formula};
use crate::config::{Config, Preset, Setting};
use crate::contract::{Ftl, FtlError, MountReport};
use crate::flash::Flash;
use crate::placement;
use crate::validity::{self, Build, Fast};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use nand::{Capabilities, Geometry, Nand, ProgramOrder};

/// When a completed write survives power loss. A write that was under way when power was cut is
/// there or not; a trim may be undone, so that the page reads as it did at some time before, as an
/// error if that copy was being erased, or as never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// From its completion on.
    OnCompletion,
    /// From the completion of the next [`Ftl::flush`] on.
    OnFlush,
    /// From its completion on with a battery ([`crate::Config::battery`]) that lasts for
    /// [`Ftl::power_failing`], which the published design assumes. Without one a cut can undo any
    /// write; the page then reads as it did at some time before, or as an error. If there is one
    /// and it could not save, for want of a good block, everything is found by reading all of the
    /// device; a write that was under way at an earlier cut may come to light then, unless the page
    /// was written since.
    Battery,
    /// Never by itself: the published simulation assumes maps in non-volatile memory.
    NonVolatileMaps,
    /// Never: what only RAM held is lost by design. A yardstick for simulations.
    Nothing,
}

/// What is known of an FTL without building one.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// How it is another FTL than the one published there, in what its results may depend on.
    pub differs: Option<&'static str>,
    /// The settings that concern it, beside those that follow from other fields; ask
    /// [`Info::honours`].
    pub settings: &'static [Setting],
    /// Its page-validity store, by its name in [`crate::validity::table`], unless
    /// [`Config::validity`] names another; `None` if it is not mapped by page and has none, so that
    /// naming one is an error.
    pub validity: Option<&'static str>,
    /// When a completed write survives power loss.
    pub durable: Durability,
    /// The order in which it programs the pages of a block. It refuses a device that does not allow
    /// it.
    pub program_order: ProgramOrder,
    /// Whether any one page that wears out, so that it can no longer be read, costs at most its own
    /// contents, also across a mount, and whether a mount sees that an image contradicts itself: it
    /// has to read all of the device for that. If not, operations or the mount can fail with an
    /// error that names a page; no read returns data of another page.
    pub outlives_worn_pages: bool,
    /// How often it has to be able to set flags of a page between erases. It refuses a device that
    /// does not allow it.
    pub flags: u8,
    /// What it has where nothing is asked for.
    pub preset: Preset,
    /// The most that one request does; ask [`Info::bound`].
    pub bound: Formula,
}

impl Info {
    /// Whether a setting makes any difference to it over its own page-validity store. One that does
    /// not is ignored, or refused when a disk is made.
    #[must_use]
    pub fn honours(&self, setting: Setting) -> bool {
        self.honours_over(setting, None)
    }

    /// As [`Info::honours`], over the page-validity store of this name, if one is named and it has
    /// one.
    #[must_use]
    pub fn honours_over(&self, setting: Setting, store: Option<&str>) -> bool {
        let of_store = |own| validity::find(store.unwrap_or(own)).is_some_and(|row| row.settings.contains(&setting));
        match setting {
            Setting::Validity => self.validity.is_some(),
            Setting::Battery => self.durable == Durability::Battery,
            _ => self.settings.contains(&setting) || self.validity.is_some_and(of_store),
        }
    }

    /// What of `asked` makes a difference to it, its preset of what is not asked for, and the
    /// default of everything else.
    #[must_use]
    pub fn config(&self, asked: &Config) -> Config {
        let mut config = Config::new(asked.logical_pages);
        let takes = |&setting: &Setting| {
            self.honours_over(setting, asked.validity)
                || asked.placement.is_some_and(|policy| self.honours_with(setting, policy))
        };
        for setting in Setting::ALL.into_iter().filter(takes) {
            setting.copy(asked, &mut config);
        }
        config.or(&self.preset)
    }

    /// The most that one request does on such a device, while nothing fails; `None` if nothing is
    /// promised there.
    #[must_use]
    pub fn bound(&self, geometry: &Geometry, config: &Config) -> Option<Bound> {
        (self.bound.most)(geometry, &config.or(&self.preset))
    }

    /// Whether a setting concerns it because it places pages by the policy of this name.
    #[must_use]
    pub fn honours_with(&self, setting: Setting, policy: &str) -> bool {
        self.honours(Setting::Placement) && placement::find(policy).is_some_and(|row| row.settings.contains(&setting))
    }

    /// Whether a device programs the pages of a block in an order that will do, and sets flags as
    /// often as needed.
    #[must_use]
    pub fn runs_on(&self, capabilities: Capabilities) -> bool {
        let in_order = self.program_order == ProgramOrder::Sequential;
        (in_order || capabilities.program_order == ProgramOrder::Free) && capabilities.spare_reprograms >= self.flags
    }

    /// Whether flash alone can bring its disk back.
    #[must_use]
    pub fn is_mountable(&self) -> bool {
        !matches!(self.durable, Durability::NonVolatileMaps | Durability::Nothing)
    }

    /// What is there after power loss, in a line.
    #[must_use]
    pub const fn promise(&self) -> &'static str {
        match (self.durable, self.outlives_worn_pages) {
            (Durability::OnCompletion, true) => {
                "every completed write is there; a worn page costs its own contents only"
            }
            (Durability::OnCompletion, false) => "every completed write is there; a worn page can be an error at mount",
            (Durability::OnFlush, true) => "every flushed write is there; a worn page costs its own contents only",
            (Durability::OnFlush, false) => "every flushed write is there; a worn page can be an error at mount",
            (Durability::NonVolatileMaps, _) => {
                "nothing without the non-volatile maps that its paper assumes; cannot be mounted"
            }
            (Durability::Nothing, _) => "not what only RAM held, by design; for comparison only, cannot be mounted",
            (Durability::Battery, _) => {
                "every completed write is there if a battery lasts for the save that its design assumes; without, some are not"
            }
        }
    }
}

/// Makes an empty disk of a device; see [`Entry::format`].
pub type Format<N> = fn(Flash<N>, &Config) -> Result<Box<dyn Ftl<N>>, FtlError>;

/// Opens a disk that was made before, also after power loss; see [`Entry::mount`].
pub type Mount<N> = fn(Flash<N>, &Config) -> Result<(Box<dyn Ftl<N>>, MountReport), FtlError>;

/// A row of the table: an FTL over one kind of device.
pub struct Entry<N: Nand> {
    /// What is known of it.
    pub info: Info,
    /// Erases the device as far as needed and makes an empty disk of it.
    pub format: Format<N>,
    /// Rebuilds the disk from flash alone, whatever power loss left there; never formats. `None`
    /// for an FTL whose paper assumes that its maps survive: it can be simulated but not served.
    pub mount: Option<Mount<N>>,
}

/// The rows, in the order of reports: those of FTLs with a page-validity store first.
macro_rules! rows {
    (over a store: $($paged:ident::INFO),*; others: $($module:ident::INFO),*;) => {
        /// What is known of every FTL, in the order of reports. It costs no code of theirs.
        #[must_use]
        pub fn infos() -> &'static [Info] {
            &[$($paged::INFO,)* $($module::INFO),*]
        }

        /// Every FTL, in the order of reports, compiled for its stores as `B` says.
        #[must_use]
        pub fn table_of<N: Nand + 'static, B: Build>() -> Vec<Entry<N>> {
            vec![$($paged::entry::<N, B>(),)* $($module::entry()),*]
        }
    };
}

rows! {
    over a store:
    page::INFO,
    dftl::INFO,
    asa::INFO,
    lazy::INFO,
    uftl::INFO,
    ib::INFO,
    gecko::INFO,
    flagship::INFO,
    ftrm::INFO,
    ftrm_base::INFO,
    ftrm_victim::INFO,
    transblock::INFO,
    mapblock::INFO,
    ftrm_baseline::INFO;
    others:
    block::INFO,
    nftl::INFO,
    bast::INFO,
    blockset::INFO,
    fast::INFO,
    vftl::INFO,
    reconfigurable::INFO,
    superblock::INFO,
    aftl::INFO,
    janus_fixed::INFO,
    janus::INFO;
}

/// Every FTL, in the order of reports, as fast as it can be.
#[must_use]
pub fn table<N: Nand + 'static>() -> Vec<Entry<N>> {
    table_of::<N, Fast>()
}

/// The row with this name.
#[must_use]
pub fn find<N: Nand + 'static>(name: &str) -> Option<Entry<N>> {
    table().into_iter().find(|entry: &Entry<N>| entry.info.name == name)
}
