//! Replies as bytes.

use super::protocol::{ALLOCATION, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk, command};
use super::request::{Failure, Request};

/// The most of an error's text that is sent, in bytes.
const TEXT_MAX: usize = 4096;

/// Adds a reply without data, or the head of a simple reply to a read.
pub(super) fn simple(out: &mut Vec<u8>, request: &Request, errno: u32) {
    let mut head = [0; 16];
    head[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    head[4..8].copy_from_slice(&errno.to_be_bytes());
    head[8..].copy_from_slice(&request.cookie.to_be_bytes());
    out.extend(head);
}

/// Adds the head of a chunk with so many bytes behind it.
fn chunk(out: &mut Vec<u8>, request: &Request, flags: u16, kind: u16, bytes: u32) {
    let mut head = [0; 20];
    head[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    head[4..6].copy_from_slice(&flags.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&request.cookie.to_be_bytes());
    head[16..].copy_from_slice(&bytes.to_be_bytes());
    out.extend(head);
}

/// Adds the head of a chunk of so many bytes that were read at `offset`.
pub(super) fn data(out: &mut Vec<u8>, request: &Request, last: bool, offset: u64, bytes: u32) {
    chunk(out, request, if last { chunk::DONE } else { 0 }, chunk::OFFSET_DATA, 8 + bytes);
    out.extend(offset.to_be_bytes());
}

/// Adds the chunk that ends a reply and holds nothing.
pub(super) fn end(out: &mut Vec<u8>, request: &Request) {
    chunk(out, request, chunk::DONE, chunk::NONE, 0);
}

/// Adds the extents of a range: lengths in bytes and states.
pub(super) fn extents(out: &mut Vec<u8>, request: &Request, extents: &[(u32, u32)]) {
    chunk(out, request, chunk::DONE, chunk::BLOCK_STATUS, 4 + 8 * extents.len() as u32);
    out.extend(ALLOCATION.1.to_be_bytes());
    for (bytes, state) in extents {
        out.extend(bytes.to_be_bytes());
        out.extend(state.to_be_bytes());
    }
}

/// Adds an error, as the end of a structured reply if the request has one.
pub(super) fn error(out: &mut Vec<u8>, request: &Request, structured: bool, failure: &Failure) {
    if !structured || !matches!(request.command, command::READ | command::BLOCK_STATUS) {
        return simple(out, request, failure.errno);
    }
    let text = &failure.text.as_bytes()[..failure.text.len().min(TEXT_MAX)];
    chunk(out, request, chunk::DONE, chunk::ERROR, 6 + text.len() as u32);
    out.extend(failure.errno.to_be_bytes());
    out.extend((text.len() as u16).to_be_bytes());
    out.extend(text);
}
