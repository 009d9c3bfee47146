//! What the kernel notes about memory that the allocator gave.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use openftl_hugepages::HugePages;

#[global_allocator]
static ALLOCATOR: HugePages = HugePages;

/// Whether the kernel was asked for huge pages at an address: `hg` in the flags of its mapping.
fn is_advised(address: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut inside = false;
    for line in maps.lines() {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let bounds =
            range.and_then(|(a, b)| Some((usize::from_str_radix(a, 16).ok()?, usize::from_str_radix(b, 16).ok()?)));
        if let Some((first, end)) = bounds {
            inside = (first..end).contains(&address);
        } else if inside && line.starts_with("VmFlags:") {
            return line.split_whitespace().any(|flag| flag == "hg");
        }
    }
    panic!("no mapping holds {address:#x}")
}

#[test]
fn large_arrays_are_advised_and_small_ones_are_not() {
    if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        return;
    }
    const MIB: usize = 1 << 20;
    let zeroed = vec![0_u8; 64 * MIB];
    let filled = vec![7_u8; 64 * MIB];
    let mut grown: Vec<u8> = Vec::with_capacity(MIB);
    grown.resize(48 * MIB, 3);
    for (name, array) in [("zeroed", &zeroed), ("filled", &filled), ("grown", &grown)] {
        assert!(is_advised(array[array.len() / 2..].as_ptr().addr()), "{name}");
    }
    assert!(zeroed.iter().all(|&byte| byte == 0) && filled.iter().all(|&byte| byte == 7));
    assert!(grown.iter().all(|&byte| byte == 3));
    let small = vec![1_u8; 3 * MIB];
    assert!(!is_advised(small[MIB..].as_ptr().addr()));
}
