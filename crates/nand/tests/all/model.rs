//! Random operations, legal and not: every device does what a plain model says.
#![cfg(all(feature = "std", unix))]
#![allow(clippy::unwrap_used)]

use crate::common::*;
use openftl_nand::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Program(u32, Stamp, Spare),
    Meta(u32, Vec<u8>, Spare),
    Copy(u32, u32, Spare),
    Erase(u32),
    Mark(u32),
    Flag(u32, Flags),
    Snapshot,
}

/// The plainest device there is.
#[derive(Clone)]
struct Model {
    free_order: bool,
    reprograms: u8,
    pages: Vec<Option<Page>>,
    bad: [bool; 6],
    erases: [u32; 6],
}

#[derive(Clone, Debug, PartialEq)]
struct Page {
    data: Result<Stamp, Vec<u8>>,
    spare: Spare,
    reprograms: u8,
}

type Outcome = Result<(), Option<Law>>;

impl Model {
    fn program(&mut self, ppn: u32, data: Result<Stamp, Vec<u8>>, spare: Spare) -> Outcome {
        if data.as_ref().is_err_and(|bytes| bytes.len() > PAGE) {
            return Err(Some(Law::PageSize));
        }
        if ppn >= 48 {
            return Err(Some(Law::AddressInRange));
        }
        let (at, end) = (ppn as usize, (ppn as usize / 8 + 1) * 8);
        if self.bad[at / 8] {
            return Err(Some(Law::BadBlock));
        }
        if self.pages[at].is_some() {
            return Err(Some(Law::EraseBeforeProgram));
        }
        if !self.free_order && self.pages[at..end].iter().any(Option::is_some) {
            return Err(Some(Law::ProgramOrder));
        }
        self.pages[at] = Some(Page { data, spare: Spare { flags: Flags::NONE, ..spare }, reprograms: 0 });
        Ok(())
    }

    fn page(&self, ppn: u32) -> Result<&Page, Option<Law>> {
        self.pages.get(ppn as usize).ok_or(Some(Law::AddressInRange))?.as_ref().ok_or(None)
    }

    fn flag(&mut self, ppn: u32, flags: Flags) -> Outcome {
        if ppn < 48 && self.bad[ppn as usize / 8] {
            return Err(Some(Law::BadBlock));
        }
        let limit = self.reprograms;
        self.page(ppn)?;
        let page = self.pages[ppn as usize].as_mut().unwrap();
        if page.reprograms >= limit {
            return Err(Some(Law::SpareReprogram));
        }
        page.reprograms += 1;
        page.spare.flags = page.spare.flags.union(flags);
        Ok(())
    }

    fn apply(&mut self, op: &Op) -> Outcome {
        match op {
            Op::Program(ppn, stamp, spare) => self.program(*ppn, Ok(*stamp), *spare),
            Op::Meta(ppn, bytes, spare) => self.program(*ppn, Err(bytes.clone()), *spare),
            Op::Copy(from, to, spare) => {
                let data = self.page(*from)?.data.clone();
                self.program(*to, data, *spare)
            }
            Op::Erase(block) => {
                let at = *block as usize;
                match self.bad.get(at) {
                    None => Err(Some(Law::AddressInRange)),
                    Some(true) => Err(Some(Law::BadBlock)),
                    Some(false) => {
                        self.pages[at * 8..][..8].fill(None);
                        self.erases[at] += 1;
                        Ok(())
                    }
                }
            }
            Op::Mark(block) => {
                *self.bad.get_mut(*block as usize).ok_or(Some(Law::AddressInRange))? = true;
                Ok(())
            }
            Op::Flag(ppn, flags) => self.flag(*ppn, *flags),
            Op::Snapshot => Ok(()),
        }
    }
}

fn apply<N: Nand<Payload: Form>>(n: &mut N, op: &Op) -> Result<(), NandError> {
    match op {
        Op::Program(ppn, stamp, spare) => put(n, *ppn, *stamp, spare),
        Op::Meta(ppn, bytes, spare) => n.program_meta(Ppn(*ppn), bytes, spare),
        Op::Copy(from, to, spare) => n.copy(Ppn(*from), Ppn(*to), spare),
        Op::Erase(block) => n.erase(BlockId(*block)),
        Op::Mark(block) => n.mark_bad(BlockId(*block)),
        Op::Flag(ppn, flags) => n.clear_flags(Ppn(*ppn), *flags),
        Op::Snapshot => Ok(()),
    }
}

fn agrees<N: Nand<Payload: Form>>(n: &mut N, model: &Model) {
    for ppn in 0..48 {
        let read = get(n, ppn);
        let mut bytes = [0; PAGE];
        let read_meta = n.read_meta(Ppn(ppn), &mut bytes);
        match &model.pages[ppn as usize] {
            None => {
                assert_eq!(read, Err(NandError::Erased { ppn: Ppn(ppn) }));
                assert_eq!(n.read_spare(Ppn(ppn)), Ok(None));
            }
            Some(page) => {
                assert_eq!(n.read_spare(Ppn(ppn)), Ok(Some(page.spare)));
                match &page.data {
                    Ok(stamp) => {
                        assert_eq!(read, Ok((*stamp, page.spare)));
                        assert_eq!(law(read_meta), Law::PageContent);
                    }
                    Err(wanted) => {
                        assert_eq!(read_meta, Ok(page.spare));
                        assert_eq!(bytes[..wanted.len()], wanted[..]);
                        assert!(bytes[wanted.len()..].iter().all(|&byte| byte == 0xFF));
                        assert_eq!(law(read), Law::PageContent);
                    }
                }
            }
        }
    }
    for block in 0..6 {
        assert_eq!(n.is_bad(BlockId(block)), model.bad[block as usize]);
    }
}

fn flags() -> impl Strategy<Value = Flags> {
    prop_oneof![3 => (0..8).prop_map(|flag| Flags::from_bits(1_u8 << flag)), 1 => any::<u8>().prop_map(Flags::from_bits)]
}

fn spares() -> impl Strategy<Value = Spare> {
    let kind = prop_oneof![4 => Just(PageKind::User), 1 => Just(PageKind::Validity)];
    let tag = prop_oneof![8 => 0..20_u32, 1 => any::<u32>()];
    let seq = prop_oneof![8 => 0..1000_u64, 2 => 30_000..70_000_u64, 1 => (1_u64 << 31) - 4..(1 << 31) + 1000, 1 => (u64::from(u32::MAX) - 4)..(u64::from(u32::MAX) + 4), 1 => Just(Spare::SEQ_END - 1)];
    let rare = || prop_oneof![8 => Just(0), 1 => any::<u32>()];
    // Whatever flags it names, a page begins without.
    let flags = prop_oneof![8 => Just(Flags::NONE), 1 => flags()];
    (kind, tag, seq, rare(), rare(), rare(), flags).prop_map(|(kind, tag, seq, erase_count, erased_at, aux, flags)| {
        Spare { kind, tag, seq, erase_count, erased_at, aux, flags }
    })
}

fn ops() -> impl Strategy<Value = Op> {
    // Few blocks most of the time, so that legal operations are common; one page and one block
    // beyond the end.
    let page = || prop_oneof![6 => 0..16_u32, 2 => 0..49_u32];
    let meta = prop_oneof![8 => prop::collection::vec(any::<u8>(), 0..6), 1 => Just(vec![3; PAGE]), 1 => Just(vec![4; PAGE + 1])];
    prop_oneof![
        8 => (page(), spares(), 0..20_u32, any::<u16>()).prop_map(|(p, s, lpn, v)| Op::Program(p, stamp(lpn, v), s)),
        8 => (page(), spares(), any::<u16>()).prop_map(|(p, s, v)| Op::Program(p, stamp(s.tag, v), s)),
        5 => (page(), meta, spares()).prop_map(|(p, bytes, s)| Op::Meta(p, bytes, s)),
        6 => (page(), page(), spares()).prop_map(|(from, to, s)| Op::Copy(from, to, s)),
        4 => prop_oneof![4 => 0..2_u32, 1 => 0..7_u32].prop_map(Op::Erase),
        1 => (3..7_u32).prop_map(Op::Mark),
        3 => (page(), flags()).prop_map(|(p, flags)| Op::Flag(p, flags)),
        1 => Just(Op::Snapshot),
    ]
}

fn outcome(result: Result<(), NandError>) -> Outcome {
    match result {
        Ok(()) => Ok(()),
        Err(NandError::Illegal { law, .. }) => Err(Some(law)),
        Err(NandError::Erased { .. }) => Err(None),
        Err(other) => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn devices_do_what_the_model_says(ops in prop::collection::vec(ops(), 1..150), old in any::<bool>()) {
        let capabilities = if old { OLD } else { Capabilities::MODERN };
        let mut model = Model {
            free_order: old, reprograms: capabilities.spare_reprograms, pages: vec![None; 48], bad: [false; 6], erases: [0; 6],
        };
        let mut sim = SimNand::new(geometry(), capabilities);
        let mut mem = MemNand::new(geometry(), capabilities);
        let mut file = file_in_memory(capabilities);
        let mut over = Faulty::new(SimNand::new(geometry(), capabilities), FaultPlan::default());
        let mut snapshots = Vec::new();
        for op in &ops {
            let wanted = model.apply(op);
            let found = apply(&mut sim, op);
            prop_assert_eq!(outcome(found), wanted, "{:?}", op);
            prop_assert_eq!(apply(&mut mem, op), found, "{:?}", op);
            prop_assert_eq!(apply(&mut over, op), found, "{:?}", op);
            prop_assert_eq!(apply(&mut file, op), found, "{:?}", op);
            if matches!(op, Op::Snapshot) {
                snapshots.push((sim.snapshot(), mem.snapshot(), file.snapshot(), model.clone()));
                // As if the process had died: what it wrote is there, and nothing was closed.
                file = FileNand::open_on(file.medium().clone(), Access::ReadWrite).unwrap();
                prop_assert_eq!(file.opening(), file::Opening { closed: false, undone: 0 });
            }
        }
        agrees(&mut over, &model);
        snapshots.push((sim, mem, file, model));
        for (mut sim, mut mem, mut file, model) in snapshots {
            agrees(&mut sim, &model);
            agrees(&mut mem, &model);
            agrees(&mut file, &model);
            prop_assert_eq!(sim.erase_counts(), &model.erases[..]);
            prop_assert!(mem.erase_counts().eq(model.erases) && file.erase_counts().eq(model.erases));
            for block in 0..6 {
                if !sim.is_bad(BlockId(block)) {
                    sim.erase(BlockId(block)).unwrap();
                }
            }
            if model.bad == [false; 6] {
                prop_assert_eq!(sim.full_records(), 0, "an erase leaked full records");
            }
        }
    }
}
