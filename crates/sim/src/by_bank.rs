//! Hosts in virtual time that place pages and collect bank by bank, as LFTL does.
//!
//! The rules are those of [`ftl::victim::by_bank`]; here stands what they are told. A bank is
//! written by whatever its dies have to do for requests. A collector has a bank until the last
//! operation of its collection has ended, though the FTL knows of the free block from the
//! beginning.

use crate::error::SimError;
use crate::timing::{Machine, Token};
use ftl::FtlError;
use ftl::victim::Banks;
use ftl::victim::by_bank::{BankView, Banked, Levels, Policy, bank_for_write, banks_to_collect};
use nand::Geometry;

/// What is known of the banks.
pub(crate) struct ByBank {
    policy: Policy,
    /// Collectors at most.
    collectors: u32,
    /// Requests in the device at most.
    workers: u32,
    levels: Levels,
    banks: Banks,
    /// A collector works on the bank.
    collecting: Vec<bool>,
    /// The bank takes no writes until it was collected.
    exclusive: Vec<bool>,
    cursor: usize,
}

/// The token of a collection of a bank.
const fn token(bank: usize) -> Token {
    Token::MAX - bank as Token
}

impl ByBank {
    /// Has an FTL collect bank by bank.
    ///
    /// # Errors
    /// [`SimError::BadSpec`] if it cannot.
    pub(crate) fn new(
        (policy, collectors): (Policy, u32),
        workers: u32,
        geometry: &Geometry,
        ftl: Option<&mut dyn Banked>,
    ) -> Result<Self, SimError> {
        let bad = |reason: &str| SimError::BadSpec { what: "collection by bank", reason: reason.to_owned() };
        let ftl = ftl.ok_or_else(|| bad("this FTL has no banks; choose one that is mapped by page"))?;
        if collectors == 0 && policy != Policy::WritePath {
            return Err(bad("there is no collector; ask for at least 1, or for npgc"));
        }
        let banks = Banks::of_device(geometry, ftl.banks());
        let levels = Levels::of(geometry.blocks() / banks.count(), geometry.pages_per_block());
        // A bank stops at its first level, one collection later if that frees a block at a time.
        ftl.keep_free((levels.0[0].free_blocks + 2) * banks.count());
        let none = vec![false; banks.count() as usize];
        Ok(Self { policy, collectors, workers, levels, banks, collecting: none.clone(), exclusive: none, cursor: 0 })
    }

    fn count(&self) -> usize {
        self.collecting.len()
    }

    /// Operations that a bank has to do for requests.
    fn writers(&self, machine: &Machine, bank: usize) -> u32 {
        self.banks.units_of(bank as u32).map(|unit| machine.waiting(unit % machine.dies())).sum()
    }

    /// Has the next page of host data go to a bank. If writers collect, that bank is collected
    /// before, if it is short and a block has to be opened.
    ///
    /// # Errors
    /// Those of the FTL.
    pub(crate) fn before_write(&mut self, machine: &Machine, ftl: &mut dyn Banked) -> Result<(), FtlError> {
        let start = self.cursor;
        self.cursor = (start + 1) % self.count();
        let view = |bank: usize| BankView {
            room: ftl.has_open(bank as u32) || ftl.free_blocks(bank as u32) > 0,
            collecting: self.collecting[bank],
            exclusive: self.exclusive[bank],
            writers: self.writers(machine, bank),
        };
        let Some(bank) = bank_for_write(self.count(), start, view) else { return Ok(()) };
        let bank = bank as u32;
        if self.policy == Policy::WritePath
            && !ftl.has_open(bank)
            && let Some(live_pages) = self.levels.limit(ftl.free_blocks(bank))
        {
            ftl.collect(bank, live_pages)?;
        }
        ftl.aim(bank);
        Ok(())
    }

    /// Collects a block of the bank most in need, if one more collector may work beside `active`
    /// requests; the token that its operations are to have.
    ///
    /// # Errors
    /// Those of the FTL.
    pub(crate) fn collect(
        &mut self,
        active: u32,
        machine: &Machine,
        ftl: &mut dyn Banked,
    ) -> Result<Option<Token>, FtlError> {
        let working = self.collecting.iter().filter(|collecting| **collecting).count() as u32;
        if working >= self.policy.collectors(active, self.workers, self.collectors) {
            return Ok(None);
        }
        let seen = |bank: usize| (ftl.free_blocks(bank as u32), self.writers(machine, bank));
        for bank in banks_to_collect(self.count(), &self.levels, seen) {
            let free = ftl.free_blocks(bank as u32);
            if self.collecting[bank] {
                continue;
            }
            let Some(live_pages) = self.levels.limit(free) else { continue };
            let helps = ftl.collect(bank as u32, live_pages)?;
            self.exclusive[bank] = helps && self.levels.exclusive(ftl.free_blocks(bank as u32));
            if helps {
                self.collecting[bank] = true;
                return Ok(Some(token(bank)));
            }
        }
        Ok(None)
    }

    /// A collection has ended.
    pub(crate) fn ended(&mut self, of: Token) {
        let bank = (Token::MAX - of) as usize;
        self.collecting[bank] = false;
    }

    /// Whether a token is of a collection.
    pub(crate) fn is_collection(&self, of: Token) -> bool {
        ((Token::MAX - of) as usize) < self.count()
    }
}
