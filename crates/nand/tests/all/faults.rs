//! Each fault, on both devices.
#![allow(clippy::unwrap_used)]

use crate::common::*;
use openftl_nand::*;

fn faulty(plan: FaultPlan) -> Faulty<SimNand> {
    Faulty::new(SimNand::new(geometry(), OLD), plan)
}

/// Programs pages 0, 1, … until power goes at operation 4, in the middle of page 4.
fn cut_in_page_4(outcome: CutOutcome) -> Faulty<SimNand> {
    let pairing = Pairing { bits_per_cell: 2, distance: 2 };
    let mut n = faulty(FaultPlan { pairing, ..FaultPlan::cut(4, outcome) });
    for page in [0, 1, 2, 6] {
        fill(&mut n, page).unwrap();
    }
    assert_eq!(fill(&mut n, 4), Err(NandError::PowerLost));
    assert_eq!(n.ops(), 5);
    every_operation_answers_power_lost(&mut n);
    n.power_up();
    for page in [0, 1] {
        assert_eq!(get(&mut n, page).unwrap().0, stamp(page, page as u16), "a completed page is lost");
    }
    n
}

fn every_operation_answers_power_lost(n: &mut Faulty<SimNand>) {
    let lost = Err(NandError::PowerLost);
    assert!(!n.is_powered());
    assert_eq!(get(n, 0).map(|_| ()), lost);
    assert_eq!(n.read_meta(Ppn(0), &mut []).map(|_| ()), lost);
    assert_eq!(n.read_spare(Ppn(0)).map(|_| ()), lost);
    assert_eq!(fill(n, 20), lost);
    assert_eq!(n.program_meta(Ppn(20), &[], &spare(0, 0)), lost);
    assert_eq!(n.copy(Ppn(0), Ppn(20), &spare(0, 0)), lost);
    assert_eq!(n.erase(BlockId(0)), lost);
    assert_eq!(n.mark_bad(BlockId(0)), lost);
    assert_eq!(n.clear_flags(Ppn(0), Flags::ALL), lost);
}

#[test]
fn not_done_leaves_the_page_to_be_programmed() {
    let mut n = cut_in_page_4(CutOutcome::NotDone);
    assert_eq!(n.read_spare(Ppn(4)).unwrap(), None);
    fill(&mut n, 4).unwrap();
}

#[test]
fn done_leaves_the_page_complete() {
    let mut n = cut_in_page_4(CutOutcome::Done);
    assert_eq!(get(&mut n, 4).unwrap().0, stamp(4, 4));
}

#[test]
fn torn_pages_cannot_be_read_or_copied_or_programmed_until_erased() {
    for outcome in [CutOutcome::Torn, CutOutcome::HalfErased] {
        let mut n = cut_in_page_4(outcome);
        let torn = NandError::Uncorrectable { ppn: Ppn(4) };
        assert_eq!(get(&mut n, 4), Err(torn));
        assert_eq!(n.read_spare(Ppn(4)), Err(torn));
        assert_eq!(n.copy(Ppn(4), Ppn(20), &spare(4, 0)), Err(torn));
        assert_eq!(law(fill(&mut n, 4)), Law::EraseBeforeProgram);
        n.erase(BlockId(0)).unwrap();
        assert_eq!(n.read_spare(Ppn(4)).unwrap(), None);
        fill(&mut n, 4).unwrap();
        get(&mut n, 4).unwrap();
    }
}

#[test]
fn torn_data_under_a_good_spare_area() {
    let mut n = cut_in_page_4(CutOutcome::TornData);
    assert_eq!(n.read_spare(Ppn(4)).unwrap(), Some(spare(4, 1004)));
    assert_eq!(get(&mut n, 4), Err(NandError::Uncorrectable { ppn: Ppn(4) }));
}

#[test]
fn torn_once_reads_well_once() {
    let mut n = cut_in_page_4(CutOutcome::TornOnce);
    get(&mut n, 4).unwrap();
    assert_eq!(get(&mut n, 4), Err(NandError::Uncorrectable { ppn: Ppn(4) }));
}

#[test]
fn weak_reads_as_erased_but_is_not() {
    let mut n = cut_in_page_4(CutOutcome::Weak);
    assert_eq!(n.read_spare(Ppn(4)).unwrap(), None);
    assert_eq!(get(&mut n, 4), Err(NandError::Erased { ppn: Ppn(4) }));
    assert_eq!(n.copy(Ppn(4), Ppn(20), &spare(4, 0)), Err(NandError::Erased { ppn: Ppn(4) }));
    assert_eq!(law(fill(&mut n, 4)), Law::EraseBeforeProgram);
}

#[test]
fn a_partner_in_the_word_line_is_lost() {
    let pairing = Pairing { bits_per_cell: 2, distance: 2 };
    let mut n = faulty(FaultPlan { pairing, ..FaultPlan::cut(3, CutOutcome::PartnerLost) });
    for page in 0..3 {
        fill(&mut n, page).unwrap();
    }
    assert_eq!(fill(&mut n, 3), Err(NandError::PowerLost));
    n.power_up();
    let readable: Vec<u32> = (0..4).filter(|&page| get(&mut n, page).is_ok()).collect();
    assert_eq!(readable, [0, 2], "page 3 shares its word line with page 1");
}

#[test]
fn pairing_covers_each_word_line() {
    let pairing = Pairing { bits_per_cell: 3, distance: 2 };
    let partners = |offset| pairing.partners(offset).collect::<Vec<_>>();
    assert_eq!([partners(1), partners(3), partners(5)], [vec![], vec![1], vec![3, 1]]);
    assert_eq!([partners(6), partners(8)], [vec![], vec![6]]);
    assert_eq!(Pairing::NONE.partners(7).count(), 0);
}

#[test]
fn a_half_erased_block_must_be_erased_again() {
    let (mut old, mut gone, mut unreadable) = (0, 0, 0);
    for seed in 0..20 {
        let mut n = faulty(FaultPlan { seed, ..FaultPlan::cut(4, CutOutcome::HalfErased) });
        for page in 0..4 {
            fill(&mut n, page).unwrap();
        }
        assert_eq!(n.erase(BlockId(0)), Err(NandError::PowerLost));
        n.power_up();
        for page in 0..4 {
            match get(&mut n, page) {
                Ok(read) => {
                    assert_eq!(read.0, stamp(page, page as u16));
                    old += 1;
                }
                Err(NandError::Erased { .. }) => gone += 1,
                Err(NandError::Uncorrectable { .. }) => unreadable += 1,
                Err(other) => panic!("{other}"),
            }
        }
        for page in [3, 4, 7] {
            assert_eq!(law(fill(&mut n, page)), Law::EraseBeforeProgram);
        }
        n.erase(BlockId(0)).unwrap();
        fill(&mut n, 0).unwrap();
    }
    assert!(old > 5 && gone > 5 && unreadable > 5, "{old} {gone} {unreadable}");
}

#[test]
fn half_an_erase_gives_no_spare_area_back() {
    for seed in 0..40 {
        let mut n = faulty(FaultPlan { seed, correctable_bits: 2, ..FaultPlan::cut(3, CutOutcome::HalfErased) });
        for page in 0..3 {
            fill(&mut n, page).unwrap();
        }
        for (page, blemish) in [Blemish::Unreadable, Blemish::Blank, Blemish::BitFlips(3)].into_iter().enumerate() {
            n.damage(Ppn(page as u32), blemish);
        }
        assert_eq!(n.erase(BlockId(0)), Err(NandError::PowerLost));
        n.power_up();
        for page in 0..3 {
            assert!(!matches!(n.read_spare(Ppn(page)), Ok(Some(_))), "page {page} reads again with seed {seed}");
        }
    }
}

#[test]
fn an_erase_is_not_done_or_done() {
    for (outcome, erased) in [(CutOutcome::NotDone, false), (CutOutcome::Done, true)] {
        let mut n = faulty(FaultPlan::cut(1, outcome));
        fill(&mut n, 0).unwrap();
        assert_eq!(n.erase(BlockId(0)), Err(NandError::PowerLost));
        n.power_up();
        assert_eq!(get(&mut n, 0).is_err(), erased);
        assert_eq!(n.inner().erase_count(BlockId(0)), u32::from(erased));
    }
}

#[test]
fn reads_are_cut_only_if_counted() {
    let plan = FaultPlan { count_reads: true, ..FaultPlan::cut(1, CutOutcome::Torn) };
    let mut n = faulty(plan);
    fill(&mut n, 0).unwrap();
    assert_eq!(get(&mut n, 0), Err(NandError::PowerLost));
    n.power_up();
    get(&mut n, 0).unwrap();
    assert_eq!(n.ops(), 3);
    let mut n = faulty(FaultPlan::cut(1, CutOutcome::Torn));
    fill(&mut n, 0).unwrap();
    get(&mut n, 0).unwrap();
    assert_eq!(n.ops(), 1);
}

#[test]
fn a_cut_copy_leaves_its_source() {
    let mut n = faulty(FaultPlan::cut(1, CutOutcome::Torn));
    fill(&mut n, 0).unwrap();
    assert_eq!(n.copy(Ppn(0), Ppn(9), &spare(0, 5)), Err(NandError::PowerLost));
    n.power_up();
    get(&mut n, 0).unwrap();
    assert_eq!(n.read_spare(Ppn(9)), Err(NandError::Uncorrectable { ppn: Ppn(9) }));
}

#[test]
fn a_cut_leaves_each_flag_as_before_or_set_and_nothing_else_changed() {
    let (before, wanted) = (Flags::from_bits(0b1100_0000), Flags::from_bits(0b0111_1110));
    let after = |outcome, seed| {
        let mut n = faulty(FaultPlan { seed, ..FaultPlan::cut(2, outcome) });
        put(&mut n, 0, stamp(3, 1), &spare(3, 9)).unwrap();
        n.clear_flags(Ppn(0), before).unwrap();
        assert_eq!(n.clear_flags(Ppn(0), wanted), Err(NandError::PowerLost));
        every_operation_answers_power_lost(&mut n);
        n.power_up();
        let (data, found) = get(&mut n, 0).unwrap();
        assert_eq!((data, found), (stamp(3, 1), Spare { flags: found.flags, ..spare(3, 9) }), "only flags change");
        assert_eq!(n.read_spare(Ppn(0)), Ok(Some(found)), "a flag stays what it reads as");
        found.flags
    };
    let mut seen = Flags::NONE;
    let mut never = Flags::ALL;
    for seed in 0..20 {
        assert_eq!(after(CutOutcome::NotDone, seed), before);
        assert_eq!(after(CutOutcome::Done, seed), before.union(wanted));
        let found = after(CutOutcome::Torn, seed);
        assert!(found.contains(before) && before.union(wanted).contains(found));
        (seen, never) = (seen.union(found), never.intersection(found));
    }
    assert_eq!((seen, never), (before.union(wanted), before), "each flag is set by some cuts and not by others");
}

#[test]
fn flags_of_a_page_that_cannot_be_read_are_not_set() {
    let mut n = cut_in_page_4(CutOutcome::Torn);
    assert_eq!(n.clear_flags(Ppn(4), Flags::ALL), Err(NandError::Uncorrectable { ppn: Ppn(4) }));
    let mut n = cut_in_page_4(CutOutcome::Weak);
    assert_eq!(n.clear_flags(Ppn(4), Flags::ALL), Err(NandError::Erased { ppn: Ppn(4) }));
    let mut n = cut_in_page_4(CutOutcome::TornData);
    n.clear_flags(Ppn(4), Flags::ALL).unwrap();
    assert_eq!(n.read_spare(Ppn(4)).unwrap(), Some(Spare { flags: Flags::ALL, ..spare(4, 1004) }));
    let mut n = faulty(FaultPlan { factory_bad: vec![BlockId(0)], ..FaultPlan::default() });
    fill(n.inner_mut(), 0).unwrap();
    assert_eq!(law(n.clear_flags(Ppn(0), Flags::ALL)), Law::BadBlock);
}

#[test]
fn a_mark_is_there_or_not() {
    let marked = |outcome, seed| {
        let mut n = faulty(FaultPlan { seed, ..FaultPlan::cut(0, outcome) });
        assert_eq!(n.mark_bad(BlockId(2)), Err(NandError::PowerLost));
        n.is_bad(BlockId(2))
    };
    assert!(!marked(CutOutcome::NotDone, 0) && marked(CutOutcome::Done, 0));
    let some: Vec<bool> = (0..20).map(|seed| marked(CutOutcome::Torn, seed)).collect();
    assert!(some.contains(&true) && some.contains(&false));
}

#[test]
fn a_failed_program_spends_its_page_only() {
    let plan = FaultPlan { failing_programs: vec![1], failing_pages: vec![Ppn(9)], ..FaultPlan::default() };
    let mut n = Faulty::new(SimNand::new(geometry(), Capabilities::MODERN), plan);
    fill(&mut n, 0).unwrap();
    assert_eq!(fill(&mut n, 1), Err(NandError::ProgramFailed { ppn: Ppn(1) }));
    assert_eq!(get(&mut n, 1), Err(NandError::Uncorrectable { ppn: Ppn(1) }));
    assert_eq!(law(fill(&mut n, 1)), Law::EraseBeforeProgram);
    fill(&mut n, 2).unwrap();
    get(&mut n, 0).unwrap();
    for _ in 0..2 {
        assert_eq!(n.copy(Ppn(0), Ppn(9), &spare(0, 0)), Err(NandError::ProgramFailed { ppn: Ppn(9) }));
        n.erase(BlockId(1)).unwrap();
    }
}

#[test]
fn a_failed_erase_leaves_a_block_to_retire() {
    let plan = FaultPlan { failing_erases: vec![0], failing_blocks: vec![BlockId(3)], ..FaultPlan::default() };
    let mut n = faulty(plan);
    assert_eq!(n.erase(BlockId(0)), Err(NandError::EraseFailed { block: BlockId(0) }));
    assert_eq!(law(fill(&mut n, 0)), Law::EraseBeforeProgram);
    n.erase(BlockId(0)).unwrap();
    for _ in 0..2 {
        assert_eq!(n.erase(BlockId(3)), Err(NandError::EraseFailed { block: BlockId(3) }));
    }
    n.mark_bad(BlockId(3)).unwrap();
    assert_eq!(law(n.erase(BlockId(3))), Law::BadBlock);
}

#[test]
fn bit_flips_are_corrected_up_to_the_limit() {
    let bit_flips = vec![(Ppn(0), 8), (Ppn(1), 9)];
    let mut n = faulty(FaultPlan { bit_flips, unreadable_pages: vec![Ppn(2)], ..FaultPlan::default() });
    assert_eq!(get(&mut n, 1), Err(NandError::Erased { ppn: Ppn(1) }), "an erased page has no flips");
    for page in 0..4 {
        fill(&mut n, page).unwrap();
    }
    get(&mut n, 0).unwrap();
    assert_eq!(n.corrected_bits(), 8);
    assert_eq!(get(&mut n, 1), Err(NandError::Uncorrectable { ppn: Ppn(1) }));
    assert_eq!(get(&mut n, 2), Err(NandError::Uncorrectable { ppn: Ppn(2) }));
    get(&mut n, 3).unwrap();
    assert_eq!(n.corrected_bits(), 0);
    n.damage(Ppn(3), Blemish::BitFlips(3));
    get(&mut n, 3).unwrap();
    assert_eq!(n.corrected_bits(), 3);
    n.erase(BlockId(0)).unwrap();
    fill(&mut n, 1).unwrap();
    assert!(get(&mut n, 1).is_err(), "a worn cell stays worn");
}

#[test]
fn factory_bad_blocks_are_bad() {
    let mut n = faulty(FaultPlan { factory_bad: vec![BlockId(0), BlockId(5)], ..FaultPlan::default() });
    for block in 0..6 {
        assert_eq!(n.is_bad(BlockId(block)), block % 5 == 0);
    }
    assert_eq!(law(fill(&mut n, 0)), Law::BadBlock);
    assert_eq!(law(n.erase(BlockId(5))), Law::BadBlock);
    fill(&mut n, 8).unwrap();
    assert!(!n.inner().is_bad(BlockId(0)), "the device below stays pristine");
}

#[test]
fn a_plan_replays() {
    let run = || {
        let mut n = faulty(FaultPlan { seed: 5, ..FaultPlan::cut(9, CutOutcome::HalfErased) });
        let results: Vec<_> = (0..8).map(|page| fill(&mut n, page)).collect();
        let erases = [n.erase(BlockId(1)), n.erase(BlockId(0))];
        n.power_up();
        let reads: Vec<_> = (0..8).map(|page| get(&mut n, page)).collect();
        (results, erases, reads)
    };
    assert_eq!(run(), run());
}

#[test]
fn faults_lie_over_a_device_that_keeps_bytes() {
    let mut n = Faulty::new(MemNand::new(geometry(), OLD), FaultPlan::cut(1, CutOutcome::Torn));
    fill(&mut n, 0).unwrap();
    assert_eq!(fill(&mut n, 1), Err(NandError::PowerLost));
    n.power_up();
    assert_eq!(get(&mut n, 1), Err(NandError::Uncorrectable { ppn: Ppn(1) }));
    assert!(get(n.inner_mut(), 1).is_ok(), "the device below stays pristine");
    n.power_down();
    assert_eq!(get(&mut n, 0), Err(NandError::PowerLost));
    let mut below = n.into_inner();
    get(&mut below, 0).unwrap();
}

#[test]
fn fading_data_reads_well_so_often_under_a_good_spare_area() {
    for reads in 1..=4 {
        let mut n = cut_in_page_4(CutOutcome::Fading(reads));
        for _ in 0..reads {
            assert_eq!(n.read_spare(Ppn(4)).unwrap(), Some(spare(4, 1004)));
            get(&mut n, 4).unwrap();
        }
        assert_eq!(n.copy(Ppn(4), Ppn(20), &spare(4, 0)), Err(NandError::Uncorrectable { ppn: Ppn(4) }));
        assert_eq!(n.read_spare(Ppn(4)).unwrap(), Some(spare(4, 1004)));
    }
}

#[test]
fn a_vanishing_page_answers_so_many_looks_of_any_kind() {
    let mut n = cut_in_page_4(CutOutcome::Vanishing(2));
    n.read_spare(Ppn(4)).unwrap();
    get(&mut n, 4).unwrap();
    assert_eq!(n.read_spare(Ppn(4)), Err(NandError::Uncorrectable { ppn: Ppn(4) }));
}

#[test]
fn flaky_pages_read_now_and_then() {
    let mut n = cut_in_page_4(CutOutcome::Flaky);
    let reads = (0..40).filter(|_| get(&mut n, 4).is_ok()).count();
    assert!((8..32).contains(&reads), "{reads} of 40 reads");
    assert!((0..40).all(|_| n.read_spare(Ppn(4)) == Ok(Some(spare(4, 1004)))));
    let mut n = cut_in_page_4(CutOutcome::FlakyWhole);
    let looks = (0..40).filter(|_| n.read_spare(Ppn(4)).is_ok()).count();
    assert!((8..32).contains(&looks), "{looks} of 40 looks");
}

#[test]
fn garbage_is_a_spare_area_that_nobody_wrote() {
    let mut n = cut_in_page_4(CutOutcome::Garbage);
    let found = n.read_spare(Ppn(4)).unwrap().unwrap();
    assert_ne!(found, spare(4, 1004));
    assert_eq!(n.read_spare(Ppn(4)), Ok(Some(found)), "it does not change");
    assert_eq!(get(&mut n, 4), Err(NandError::Uncorrectable { ppn: Ppn(4) }));
}

#[test]
fn an_altered_spare_area_is_as_it_was_but_for_one_field_and_perhaps_the_auxiliary_bits() {
    for seed in 0..60 {
        let plan = FaultPlan { seed, ..FaultPlan::cut(4, CutOutcome::Altered) };
        let mut n = faulty(plan);
        (0..4).for_each(|page| fill(&mut n, page).unwrap());
        assert_eq!(fill(&mut n, 4), Err(NandError::PowerLost));
        n.power_up();
        let (was, found) = (spare(4, 1004), n.read_spare(Ppn(4)).unwrap().unwrap());
        let fields = |s: Spare| [u64::from(s.tag), s.seq, s.erase_count.into(), s.erased_at.into(), s.aux.into()];
        let differ = fields(was).into_iter().zip(fields(found)).filter(|(was, found)| was != found).count();
        assert!((1..=2).contains(&differ) && found.kind == was.kind, "seed {seed}: {found:?}");
        assert!(differ == 1 || found.aux != was.aux, "seed {seed}: {found:?}");
        assert!(Spare { aux: was.aux, ..found } != was, "seed {seed}: {found:?}");
        assert_eq!(n.read_spare(Ppn(4)), Ok(Some(found)), "it does not change");
        assert_eq!(get(&mut n, 4), Err(NandError::Uncorrectable { ppn: Ppn(4) }));
    }
}

#[test]
fn a_paling_page_reads_as_erased_after_some_looks() {
    let mut n = cut_in_page_4(CutOutcome::Paling(2));
    assert!(get(&mut n, 4).is_ok());
    assert_eq!(n.read_spare(Ppn(4)), Ok(Some(spare(4, 1004))));
    assert_eq!(n.read_spare(Ppn(4)), Ok(None));
    assert_eq!(get(&mut n, 4), Err(NandError::Erased { ppn: Ppn(4) }));
    assert_eq!(law(fill(&mut n, 4)), Law::EraseBeforeProgram);
}

#[test]
fn a_falsely_half_erased_block_shows_altered_pages_and_erased_ones() {
    let (mut altered, mut erased) = (0, 0);
    for seed in 0..60 {
        let mut n = faulty(FaultPlan { seed, ..FaultPlan::cut(4, CutOutcome::HalfErasedFalsely) });
        (0..4).for_each(|page| fill(&mut n, page).unwrap());
        assert_eq!(n.erase(BlockId(0)), Err(NandError::PowerLost));
        n.power_up();
        for page in 0..4 {
            let was = spare(page, 1000 + u64::from(page));
            let first = n.read_spare(Ppn(page)).unwrap();
            altered += u32::from(first.is_some_and(|found| found != was));
            erased += u32::from(first.is_none());
            assert_eq!(law(fill(&mut n, page)), Law::EraseBeforeProgram);
        }
    }
    assert!(altered > 20 && erased > 20, "{altered} {erased}");
}

#[test]
fn an_oddly_half_erased_block_shows_every_kind_of_torn_page() {
    let (mut garbage, mut fading) = (0, 0);
    for seed in 0..60 {
        let mut n = faulty(FaultPlan { seed, ..FaultPlan::cut(4, CutOutcome::HalfErasedOddly) });
        for page in 0..4 {
            fill(&mut n, page).unwrap();
        }
        assert_eq!(n.erase(BlockId(0)), Err(NandError::PowerLost));
        n.power_up();
        for page in 0..4 {
            let was = spare(page, 1000 + u64::from(page));
            garbage += u32::from(matches!(n.read_spare(Ppn(page)), Ok(Some(found)) if found != was));
            fading += u32::from(get(&mut n, page).is_ok() && get(&mut n, page).is_err());
        }
    }
    assert!(garbage > 3 && fading > 3, "{garbage} {fading}");
}

#[test]
fn a_quietly_half_erased_block_shows_only_later_that_it_is_one() {
    let mut gone = 0;
    for seed in 0..40 {
        let mut n = faulty(FaultPlan { seed, ..FaultPlan::cut(4, CutOutcome::HalfErasedQuietly) });
        for page in 0..4 {
            fill(&mut n, page).unwrap();
        }
        assert_eq!(n.erase(BlockId(0)), Err(NandError::PowerLost));
        n.power_up();
        for page in 0..4 {
            let first = get(&mut n, page);
            assert!(matches!(first, Ok(_) | Err(NandError::Erased { .. })), "seed {seed}: {first:?}");
            gone += u32::from((0..8).any(|_| matches!(n.read_spare(Ppn(page)), Err(NandError::Uncorrectable { .. }))));
            assert_eq!(law(fill(&mut n, page)), Law::EraseBeforeProgram);
        }
    }
    assert!(gone > 20, "{gone}");
}

#[test]
fn a_failed_program_can_leave_what_a_cut_one_can() {
    let (mut complete, mut torn, mut blank) = (0, 0, 0);
    for seed in 0..40 {
        let plan = FaultPlan { seed, odd_failures: true, failing_programs: vec![0], ..FaultPlan::default() };
        let mut n = faulty(plan);
        assert_eq!(fill(&mut n, 0), Err(NandError::ProgramFailed { ppn: Ppn(0) }));
        assert_eq!(law(fill(&mut n, 0)), Law::EraseBeforeProgram);
        match get(&mut n, 0) {
            Ok(_) => complete += 1,
            Err(NandError::Erased { .. }) => blank += 1,
            Err(_) => torn += 1,
        }
    }
    assert!(complete > 2 && torn > 2 && blank > 2, "{complete} {torn} {blank}");
}

#[test]
fn a_mark_that_erases_leaves_nothing_or_half_of_it_if_power_is_cut() {
    let plan = |cuts: &[CutOutcome]| FaultPlan {
        marks_erase: true,
        cuts: cuts.iter().map(|&outcome| Cut { at: 4, outcome }).collect(),
        ..FaultPlan::default()
    };
    let marked = |plan: FaultPlan| {
        let mut n = faulty(plan);
        (0..4).for_each(|page| fill(&mut n, page).unwrap());
        let outcome = n.mark_bad(BlockId(0));
        n.power_up();
        let whole = (0..4).filter(|&page| get(&mut n, page).is_ok()).count();
        (outcome, n.is_bad(BlockId(0)), whole)
    };
    let lost = Err(NandError::PowerLost);
    assert_eq!(marked(plan(&[])), (Ok(()), true, 0));
    assert_eq!(marked(FaultPlan::default()), (Ok(()), true, 4));
    assert_eq!(marked(plan(&[CutOutcome::NotDone])), (lost, false, 4));
    assert_eq!(marked(plan(&[CutOutcome::Done])), (lost, true, 0));
    let seen: Vec<_> = (0..64).map(|seed| marked(FaultPlan { seed, ..plan(&[CutOutcome::Torn]) })).collect();
    for wanted in [(true, 0), (false, 0)] {
        assert!(seen.iter().any(|(_, bad, whole)| (*bad, *whole) == wanted), "{wanted:?} is not in {seen:?}");
    }
    assert!(seen.iter().any(|(_, bad, whole)| !bad && (1..4).contains(whole)), "none is half erased: {seen:?}");
    // A block that cannot be erased is marked all the same.
    let stuck = FaultPlan { failing_blocks: vec![BlockId(0)], ..plan(&[]) };
    let (outcome, bad, whole) = marked(stuck);
    assert!(outcome.is_ok() && bad && whole < 4, "{whole} pages are whole");
}
