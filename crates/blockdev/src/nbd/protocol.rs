//! Numbers of the protocol. All are sent big endian.

/// Begins the handshake.
pub const INIT_MAGIC: u64 = 0x4E42_444D_4147_4943;
/// Begins an option, and ends the greeting.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454F_5054;
/// Begins a reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_E889_0455_65A9;
/// Begins a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Begins a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Begins a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668E_33EF;

/// Bytes of a request without its payload.
pub const REQUEST_BYTES: usize = 28;
/// The longest read or write, in bytes: what clients assume that are told nothing.
pub const PAYLOAD_MAX: u32 = 32 << 20;

/// Flags of the handshake, the same from both sides.
pub mod hello {
    /// Options are answered.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// The reply to `EXPORT_NAME` has no padding.
    pub const NO_ZEROES: u16 = 2;
}

/// Options of the handshake.
pub mod option {
    /// Begin with this export; the answer has no errors.
    pub const EXPORT_NAME: u32 = 1;
    /// End.
    pub const ABORT: u32 = 2;
    /// Name the exports.
    pub const LIST: u32 = 3;
    /// Describe an export.
    pub const INFO: u32 = 6;
    /// Begin with this export.
    pub const GO: u32 = 7;
    /// Use structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Name the metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
pub mod option_reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// An export.
    pub const SERVER: u32 = 2;
    /// Something about an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// The option is not known.
    pub const ERR_UNSUP: u32 = 0x8000_0001;
    /// The option makes no sense, or not yet.
    pub const ERR_INVALID: u32 = 0x8000_0003;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = 0x8000_0006;
    /// The option is too long.
    pub const ERR_TOO_BIG: u32 = 0x8000_0009;
}

/// What can be said of an export.
pub mod info {
    /// Size and flags.
    pub const EXPORT: u16 = 0;
    /// Its name.
    pub const NAME: u16 = 1;
    /// What it is.
    pub const DESCRIPTION: u16 = 2;
    /// Sizes that requests may have.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Flags of an export.
pub mod export {
    /// The others mean something.
    pub const HAS_FLAGS: u16 = 1;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// `FLUSH` works.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// `FUA` works.
    pub const SEND_FUA: u16 = 1 << 3;
    /// `TRIM` works.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// `WRITE_ZEROES` works.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// A read can be answered in one chunk.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush covers what other connections wrote.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// `FAST_ZERO` works.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Commands.
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write.
    pub const WRITE: u16 = 1;
    /// Goodbye.
    pub const DISCONNECT: u16 = 2;
    /// Make what was written survive.
    pub const FLUSH: u16 = 3;
    /// Forget.
    pub const TRIM: u16 = 4;
    /// Make zeros.
    pub const WRITE_ZEROES: u16 = 6;
    /// What is known of a range.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of commands.
pub mod flag {
    /// Survive power loss before the answer.
    pub const FUA: u16 = 1;
    /// Zeros are written, and take space.
    pub const NO_HOLE: u16 = 1 << 1;
    /// Answer in one chunk.
    pub const DF: u16 = 1 << 2;
    /// One extent only.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Fail rather than be slow.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunks of structured replies.
pub mod chunk {
    /// The last one.
    pub const DONE: u16 = 1;
    /// Nothing.
    pub const NONE: u16 = 0;
    /// Bytes of a read.
    pub const OFFSET_DATA: u16 = 1;
    /// Extents.
    pub const BLOCK_STATUS: u16 = 5;
    /// An error.
    pub const ERROR: u16 = 0x8001;
}

/// Errors.
pub mod errno {
    /// Not allowed: the export is read-only.
    pub const EPERM: u32 = 1;
    /// Data cannot be read or kept.
    pub const EIO: u32 = 5;
    /// The request makes no sense.
    pub const EINVAL: u32 = 22;
    /// No block is left to write to, or the write lies beyond the end.
    pub const ENOSPC: u32 = 28;
    /// It cannot be done so.
    pub const ENOTSUP: u32 = 95;
}

/// The one metadata context, and the number by which its extents are sent.
pub const ALLOCATION: (&str, u32) = ("base:allocation", 1);
/// Of an extent of [`ALLOCATION`]: takes no space.
pub const STATE_HOLE: u32 = 1;
/// Of an extent of [`ALLOCATION`]: reads as zeros.
pub const STATE_ZERO: u32 = 2;
