//! The card of LFTL's paper in full, 512 GiB: how long mounts take of its time.

use nand::{Dimensions, Geometry, Lpn, Timing};
use openftl_lftl::{Engine, Hollow, MountReport, Ops, Options, Policy, Recovery};

/// Seconds that operations take on the card, from above. Two neighbouring banks share a read queue,
/// and one works at a time; a spare area costs a read of the least unit; the bus of a channel
/// serves 16 banks; all reads together have the rate of the host's bus.
fn seconds(ops: &[Ops], timing: &Timing) -> f64 {
    const UNIT: u64 = 4096;
    let page: u64 = 32 << 10;
    let transfer = |bytes: u64| bytes * 1000 / timing.channel_bytes_per_us;
    let busy = |ops: &Ops| {
        ops.reads * (timing.read_ns + transfer(page))
            + ops.spare_reads * (timing.read_ns + transfer(UNIT))
            + ops.programs * (timing.program_ns + transfer(page))
            + ops.erases * timing.erase_ns
    };
    let moved = |ops: &Ops| (ops.reads + ops.programs) * page + ops.spare_reads * UNIT;
    let queue = ops.chunks(2).map(|pair| pair.iter().map(busy).sum::<u64>()).max().unwrap();
    let channel = ops.chunks(16).map(|banks| transfer(banks.iter().map(moved).sum())).max().unwrap();
    let host = ops.iter().map(moved).sum::<u64>() * 1000 / 320;
    queue.max(channel).max(host) as f64 / 1e9
}

#[test]
fn the_512_gib_card_is_found_again_in_seconds_of_its_time() {
    let profile = nand::find("lftl-card").unwrap();
    let whole = profile.geometry().unwrap();
    let banks = whole.dies();
    let one = Dimensions { channels: 1, dies_per_channel: 1, blocks: whole.blocks() / banks, ..whole.dimensions() };
    let geometry = Geometry::new(one).unwrap();
    let pages = (f64::from(whole.pages()) * profile.default_logical_ratio) as u32;
    let options = Options { policy: Policy::WritePath, ..Options::new(pages) };
    let devices = (0..banks).map(|_| Hollow::new(geometry, profile.capabilities)).collect();
    let disk = Engine::format(devices, options.clone()).unwrap();

    // Nearly all that can be programmed before a checkpoint has to be written: after it a mount
    // would read little.
    let (saved, checkpoint_pages) = (disk.report().saved_pages, 1_860);
    let data = vec![7; whole.page_bytes() as usize];
    let mut lpn = 0_u32;
    while disk.report().host_programs < 2 * 32 * checkpoint_pages {
        lpn = lpn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        disk.write(Lpn(lpn % pages), 0, &data).unwrap();
    }
    assert_eq!(disk.report().saved_pages, saved, "a checkpoint was written meanwhile");
    let written = disk.report().host_programs;
    assert!(written > 100_000, "{written} pages were programmed");
    let mount =
        |devices, recovery| -> (Engine, MountReport) { Engine::mount(devices, options.clone(), recovery, 2).unwrap() };
    let (disk, crashed) = mount(disk.into_devices(), Recovery::Bounded);
    assert!(crashed.checkpoint && crashed.rebuilt_entries > 100_000, "{}", crashed.rebuilt_entries);
    let (search, all) = (seconds(&crashed.search, &profile.timing), seconds(&crashed.all, &profile.timing));
    assert!(search < 10.0 && all < 10.0, "after power loss {search:.2} s, {all:.2} s until it is writable");

    let (_, clean) = mount(disk.shut_down().unwrap(), Recovery::Bounded);
    assert!(clean.clean);
    let clean = seconds(&clean.all, &profile.timing);
    assert!(clean < 1.0, "after a clean shutdown {clean:.2} s");
    println!("after power loss {search:.2} s, writable after {all:.2} s; after a clean shutdown {clean:.2} s");
}
