//! The built-in profiles.

use super::{Limits, Profile};
use crate::faults::Pairing;
use crate::geometry::{Capabilities, Dimensions, ProgramOrder, Timing};
use alloc::borrow::Cow::Borrowed;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Small devices without time, for tests: `tiny`, `small` and `odd` differ in shape only.
const fn test_device(name: &'static str, summary: &'static str, blocks: u32, pages_per_block: u32) -> Profile {
    Profile {
        name: Borrowed(name),
        summary: Borrowed(summary),
        source: Borrowed("made up for tests; the times are those of a small SLC die"),
        geometry: Dimensions {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks,
            pages_per_block,
            page_bytes: 512,
            spare_bytes: 32,
        },
        capabilities: Capabilities::MODERN,
        timing: Timing {
            read_ns: 25 * US,
            spare_read_ns: 25 * US,
            program_ns: 200 * US,
            erase_ns: 2 * MS,
            channel_bytes_per_us: 0,
            ..Timing::NONE
        },
        limits: Limits::NONE,
        pairing: Pairing::NONE,
        endurance_erases: 100_000,
        default_logical_ratio: 0.5,
    }
}

pub(super) static PROFILES: [Profile; 11] = [
    GECKO_2TB,
    JANUS_SLC,
    LFTL_CARD,
    FTRM_QLC,
    MODERN_TLC,
    MODERN_QLC,
    SPI_NAND_1G,
    test_device("tiny", "16 blocks of 8 pages, for tests", 16, 8),
    test_device("small", "64 blocks of 16 pages, for tests", 64, 16),
    test_device("odd", "45 blocks of 12 pages, neither a power of two, for tests", 45, 12),
    DEMO,
];

const GECKO_2TB: Profile = Profile {
    name: Borrowed("gecko-2tb"),
    summary: Borrowed("2 TiB in 2^22 blocks of 128 pages of 4 KiB, as in GeckoFTL"),
    source: Borrowed(
        "Dayan, Bonnet, Idreos: GeckoFTL (SIGMOD 2016), Figure 2 and section 5: read 100 us, spare read 100/32 = 3 us, \
         write 1 ms, R = 0.7. The paper gives no erase time and no channels; assumed: 2 ms, and one die, so that \
         operations are counted as the paper counts them. Its writes include the transfer, so transfers take no time.",
    ),
    geometry: Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 1 << 22,
        pages_per_block: 128,
        page_bytes: 4096,
        spare_bytes: 128,
    },
    capabilities: Capabilities::MODERN,
    timing: Timing {
        read_ns: 100 * US,
        spare_read_ns: 3 * US,
        program_ns: MS,
        erase_ns: 2 * MS,
        channel_bytes_per_us: 0,
        ..Timing::NONE
    },
    limits: Limits::NONE,
    pairing: Pairing::NONE,
    endurance_erases: 3_000,
    default_logical_ratio: 0.7,
};

const JANUS_SLC: Profile = Profile {
    name: Borrowed("janus-slc"),
    summary: Borrowed("1 GiB of SLC in 8192 blocks of 64 pages of 2 KiB, as in Janus-FTL"),
    source: Borrowed(
        "Kwon, Kim, Choi, Lee, Noh: Janus-FTL (EMSOFT 2010): N_P = 64, erase 2 ms, program 200 us, copy 225 us; the \
         read of 25 us is what remains of the copy. Old SLC: pages of a block in any order, and spare areas \
         programmed again. Assumed: three more programs of a spare area (four partial programs were usual), 100,000 \
         erases, transfers within the times, and all 64 B of spare area for software, the ECC kept elsewhere.",
    ),
    geometry: Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 8192,
        pages_per_block: 64,
        page_bytes: 2048,
        spare_bytes: 64,
    },
    capabilities: Capabilities {
        program_order: ProgramOrder::Free,
        spare_reprograms: 3,
        multi_plane: false,
        copy_back: true,
    },
    timing: Timing {
        read_ns: 25 * US,
        spare_read_ns: 25 * US,
        program_ns: 200 * US,
        erase_ns: 2 * MS,
        channel_bytes_per_us: 0,
        ..Timing::NONE
    },
    limits: Limits::NONE,
    pairing: Pairing::NONE,
    endurance_erases: 100_000,
    default_logical_ratio: 0.9,
};

const LFTL_CARD: Profile = Profile {
    name: Borrowed("lftl-card"),
    summary: Borrowed("a 512 GiB SLC card of 4 channels by 16 banks, 32 KiB pages, as in LFTL"),
    source: Borrowed(
        "Srimugunthan, Gopinath, Yasa: LFTL, section on the flash card and Table 1. A die here is a bank of 8 data chips \
         and 1 parity chip: 32 KiB program unit, 4 KiB read unit, 2 MiB erase unit, 512 B of spare area, 100,000 erases; \
         8 read queues a channel (two neighbouring banks each), one write and one erase queue, 256 requests each. \
         Fitted to Table 1, no figure to one cell alone: a channel takes 246 B/us (banks 0 to 15 write 246 MB/s) and \
         gives 290 (they read 290). A bank writes 80 to 82 MB/s, so a page takes 404 us, of which 133 are transfer. A \
         read queue gives 114 MB/s, so a page takes 287 us, of which 113 are transfer. All reads together have 312 MB/s, \
         between the table's 304 and 320, all writes 533. Assumed: erase 2 ms; a spare area costs a read of 4 KiB.",
    ),
    geometry: Dimensions {
        channels: 4,
        dies_per_channel: 16,
        planes_per_die: 1,
        blocks: 1 << 18,
        pages_per_block: 64,
        page_bytes: 32 << 10,
        spare_bytes: 512,
    },
    capabilities: Capabilities::MODERN,
    timing: Timing {
        read_ns: 174 * US,
        spare_read_ns: 25 * US,
        program_ns: 271 * US,
        erase_ns: 2 * MS,
        channel_bytes_per_us: 246,
        ..Timing::NONE
    },
    limits: Limits {
        read_queue_dies: 2,
        write_queues_per_channel: 1,
        queue_depth: 256,
        read_unit_bytes: 4096,
        channel_read_bytes_per_us: 290,
        host_read_bytes_per_us: 312,
        host_write_bytes_per_us: 533,
    },
    pairing: Pairing::NONE,
    endurance_erases: 100_000,
    default_logical_ratio: 0.9,
};

const FTRM_QLC: Profile = Profile {
    name: Borrowed("ftrm-qlc"),
    summary: Borrowed("128 GiB of QLC on 8 channels, 8 KiB pages, spare areas programmed again, as in FTRM"),
    source: Borrowed(
        "Mativenga, Hamandawana, Chung, Kim: FTRM, Table 3: 8 channels, 4 dies, 2048 blocks of 256 pages of 8 KB a \
         plane, spare area 64 B, read 25 us, write 200 us, erase 1.5 ms, bus 100 us (82 B/us), 5000 program cycles. One plane a die \
         and 4 dies a channel give 128 GiB. The paper clears flags in spare areas in place, which no QLC allows; \
         assumed: 8 times. Assumed: all 64 B for software, the ECC kept elsewhere.",
    ),
    geometry: Dimensions {
        channels: 8,
        dies_per_channel: 4,
        planes_per_die: 1,
        blocks: 8 * 4 * 2048,
        pages_per_block: 256,
        page_bytes: 8192,
        spare_bytes: 64,
    },
    capabilities: Capabilities { spare_reprograms: 8, ..Capabilities::MODERN },
    timing: Timing {
        read_ns: 25 * US,
        spare_read_ns: 25 * US,
        program_ns: 200 * US,
        erase_ns: 1_500 * US,
        channel_bytes_per_us: 82,
        ..Timing::NONE
    },
    limits: Limits::NONE,
    pairing: Pairing { bits_per_cell: 4, distance: 4 },
    endurance_erases: 5_000,
    default_logical_ratio: 0.85,
};

const MODERN_TLC: Profile = Profile {
    name: Borrowed("modern-tlc"),
    summary: Borrowed("2 TiB of 3D TLC in dies of 512 Gbit: 8 channels by 4 dies of 4 planes, 16 KiB pages"),
    source: Borrowed(
        "Assumed, no one data sheet: the order of magnitude of 1xx-layer 3D TLC as makers present it at ISSCC (array \
         read near 50 us, 4 planes a die, 16 KiB pages, buses of 1200 MT/s and more). Program 600 us is a \
         page's share of a word line programmed in one pass. 768 pages a block = 64 word lines x 4 strings x 3. A page \
         of ECC words leaves 128 B of some 2 KiB spare area to software. 3000 erases.",
    ),
    geometry: Dimensions {
        channels: 8,
        dies_per_channel: 4,
        planes_per_die: 4,
        blocks: 8 * 4 * 4 * 1376,
        pages_per_block: 768,
        page_bytes: 16 << 10,
        spare_bytes: 128,
    },
    capabilities: Capabilities { multi_plane: true, copy_back: true, ..Capabilities::MODERN },
    timing: Timing {
        read_ns: 50 * US,
        spare_read_ns: 50 * US,
        program_ns: 600 * US,
        erase_ns: 5 * MS,
        channel_bytes_per_us: 1_200,
        ..Timing::NONE
    },
    limits: Limits::NONE,
    pairing: Pairing { bits_per_cell: 3, distance: 1 },
    endurance_erases: 3_000,
    default_logical_ratio: 0.9,
};

const MODERN_QLC: Profile = Profile {
    name: Borrowed("modern-qlc"),
    summary: Borrowed("8 TiB of 3D QLC in dies of 1 Tbit: 8 channels by 8 dies of 4 planes, 16 KiB pages"),
    source: Borrowed(
        "Assumed, no one data sheet: 1 Tbit 3D QLC dies; ISSCC 2020 13.2 (A 1Tb 4b/cell 96-stacked-WL 3D NAND flash \
         memory) gives 30 MB/s of program throughput a die, which 2 ms a page of 16 KiB in 4 planes meets (33 MB/s). Read \
         110 us, erase 10 ms, 1024 pages a block = 64 word lines x 4 strings x 4, 128 B of spare area to software, 1000 \
         erases. Programmed in two passes, so that a word line's earlier pages are at risk: pages 4 apart.",
    ),
    geometry: Dimensions {
        channels: 8,
        dies_per_channel: 8,
        planes_per_die: 4,
        blocks: 8 * 8 * 4 * 2048,
        pages_per_block: 1024,
        page_bytes: 16 << 10,
        spare_bytes: 128,
    },
    capabilities: Capabilities { multi_plane: true, copy_back: true, ..Capabilities::MODERN },
    timing: Timing {
        read_ns: 110 * US,
        spare_read_ns: 110 * US,
        program_ns: 2 * MS,
        erase_ns: 10 * MS,
        channel_bytes_per_us: 1_200,
        ..Timing::NONE
    },
    limits: Limits::NONE,
    pairing: Pairing { bits_per_cell: 4, distance: 4 },
    endurance_erases: 1_000,
    default_logical_ratio: 0.9,
};

const SPI_NAND_1G: Profile = Profile {
    name: Borrowed("spi-nand-1g"),
    summary: Borrowed("a 1 Gbit SLC chip on a serial bus, 1024 blocks of 64 pages of 2 KiB"),
    source: Borrowed(
        "The class of Winbond's W25N01GV: 1024 blocks of 64 pages of 2048 + 64 B, 104 MHz quad SPI (52 B/us). Typical \
         times of such chips: read with ECC 50 us, program 250 us, erase 2 ms; 100,000 erases. With the chip's ECC on, \
         only some 24 B of the spare area are left to software, too few for the 29 B of the format; assumed: ECC done \
         by the controller and kept elsewhere, 64 B free.",
    ),
    geometry: Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 1024,
        pages_per_block: 64,
        page_bytes: 2048,
        spare_bytes: 64,
    },
    capabilities: Capabilities::MODERN,
    timing: Timing {
        read_ns: 50 * US,
        spare_read_ns: 50 * US,
        program_ns: 250 * US,
        erase_ns: 2 * MS,
        channel_bytes_per_us: 52,
        ..Timing::NONE
    },
    limits: Limits::NONE,
    pairing: Pairing::NONE,
    endurance_erases: 100_000,
    default_logical_ratio: 0.9,
};

const DEMO: Profile = Profile {
    name: Borrowed("demo"),
    summary: Borrowed("1 GiB on 8 channels by 4 dies, 4 KiB pages: enough to compare, small enough to wait for"),
    source: Borrowed(
        "Made up: GeckoFTL's block (128 pages of 4 KiB, read 100 us, spare read 3 us, write 1 ms, erase 2 ms) on 32 dies, \
         with buses of 400 B/us.",
    ),
    geometry: Dimensions {
        channels: 8,
        dies_per_channel: 4,
        planes_per_die: 1,
        blocks: 2048,
        pages_per_block: 128,
        page_bytes: 4096,
        spare_bytes: 128,
    },
    capabilities: Capabilities::MODERN,
    timing: Timing {
        read_ns: 100 * US,
        spare_read_ns: 3 * US,
        program_ns: MS,
        erase_ns: 2 * MS,
        channel_bytes_per_us: 400,
        ..Timing::NONE
    },
    limits: Limits::NONE,
    pairing: Pairing::NONE,
    endurance_erases: 3_000,
    default_logical_ratio: 0.7,
};
