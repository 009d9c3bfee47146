//! What the benchmark runs, and the tests run tiny.

use openftl_nand::{BlockId, Flags, Geometry, Lpn, Nand, PageKind, Spare, Stamp};

/// Fills the device block by block `rounds` times, erasing each block first, as an FTL without
/// garbage would; answers a hash of what the last round left.
pub fn fill<N: Nand<Payload = Stamp>>(device: &mut N, rounds: u32) -> u64 {
    let geometry: Geometry = *device.geometry();
    let mut seq = 0;
    for round in 0..rounds {
        for b in 0..geometry.blocks() {
            let block = BlockId(b);
            device.erase(block).expect("erasing a good block is legal");
            for offset in 0..geometry.pages_per_block() {
                let ppn = geometry.page_at(block, offset);
                let stamp = Stamp { lpn: Lpn(ppn.0.wrapping_mul(0x9E37_79B1)), version: round as u16 };
                device.program(ppn, &stamp, &spare(stamp, seq, round)).expect("programming in order is legal");
                seq += 1;
            }
        }
    }
    hash(device)
}

/// Copies every other block to the block after it, `rounds` times, as a collector would.
pub fn copy<N: Nand<Payload = Stamp>>(device: &mut N, rounds: u32) -> u64 {
    let geometry: Geometry = *device.geometry();
    let mut seq = u64::from(geometry.pages());
    for round in 0..rounds {
        for b in (0..geometry.blocks() - 1).step_by(2) {
            device.erase(BlockId(b + 1)).expect("erasing a good block is legal");
            for offset in 0..geometry.pages_per_block() {
                let from = geometry.page_at(BlockId(b), offset);
                if let Some(old) = device.read_spare(from).expect("a good page is readable") {
                    let spare = Spare { seq, erase_count: round, ..old };
                    device.copy(from, geometry.page_at(BlockId(b + 1), offset), &spare).expect("copying is legal");
                    seq += 1;
                }
            }
        }
    }
    hash(device)
}

/// Fills every block with metadata pages `rounds` times.
pub fn fill_meta<N: Nand<Payload = Stamp>>(device: &mut N, rounds: u32) -> u64 {
    let geometry: Geometry = *device.geometry();
    let bytes = vec![0xA5; geometry.page_bytes() as usize];
    let mut seq = 0;
    for round in 0..rounds {
        for b in 0..geometry.blocks() {
            device.erase(BlockId(b)).expect("erasing a good block is legal");
            for offset in 0..geometry.pages_per_block() {
                let stamp = Stamp { lpn: Lpn(offset), version: 0 };
                let spare = Spare { kind: PageKind::Translation, ..spare(stamp, seq, round) };
                let ppn = geometry.page_at(BlockId(b), offset);
                device.program_meta(ppn, &bytes, &spare).expect("programming in order is legal");
                seq += 1;
            }
        }
    }
    hash(device)
}

/// Erases and programs these blocks with whole pages of bytes.
pub fn fill_bytes(device: &mut impl Nand<Payload = [u8]>, blocks: std::ops::Range<u32>) {
    let geometry: Geometry = *device.geometry();
    let mut bytes = vec![0xA5; geometry.page_bytes() as usize];
    for block in blocks.map(BlockId) {
        device.erase(block).expect("erasing a good block is legal");
        for offset in 0..geometry.pages_per_block() {
            let ppn = geometry.page_at(block, offset);
            bytes[..4].copy_from_slice(&ppn.0.to_le_bytes());
            let spare = spare(Stamp { lpn: Lpn(ppn.0), version: 0 }, ppn.0.into(), 0);
            device.program(ppn, &bytes, &spare).expect("programming in order is legal");
        }
    }
}

/// Copies the first `blocks` blocks to as many behind them, each erased first.
pub fn copy_bytes(device: &mut impl Nand<Payload = [u8]>, blocks: u32) {
    let geometry: Geometry = *device.geometry();
    for block in 0..blocks {
        device.erase(BlockId(blocks + block)).expect("erasing a good block is legal");
        for offset in 0..geometry.pages_per_block() {
            let from = geometry.page_at(BlockId(block), offset);
            let to = geometry.page_at(BlockId(blocks + block), offset);
            let spare = spare(Stamp { lpn: Lpn(from.0), version: 1 }, to.0.into(), 0);
            device.copy(from, to, &spare).expect("copying is legal");
        }
    }
}

fn spare(stamp: Stamp, seq: u64, round: u32) -> Spare {
    Spare {
        kind: PageKind::User,
        tag: stamp.lpn.0,
        seq,
        erase_count: round,
        erased_at: round,
        aux: 0,
        flags: Flags::NONE,
    }
}

/// FNV-1a over the spare areas of the first page of every block.
fn hash<N: Nand>(device: &mut N) -> u64 {
    let geometry: Geometry = *device.geometry();
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for b in 0..geometry.blocks() {
        if let Ok(Some(spare)) = device.read_spare(geometry.page_at(BlockId(b), 0)) {
            for byte in spare.encode() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
            }
        }
    }
    hash
}
