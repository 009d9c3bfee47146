//! The handshake: what a client gets.

use super::protocol::{
    ALLOCATION, INIT_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, PAYLOAD_MAX, export, hello, info, option, option_reply,
};
use super::socket::{Gone, Input, Socket, Wait, be16, be32};
use crate::contract::BlockDevice;
use std::time::{Duration, Instant};

/// The longest option that is read; names have at most 4096 bytes.
const OPTION_MAX: usize = 64 << 10;
/// Options longer than this are not even skipped.
const SKIPPED_MAX: usize = 1 << 20;
/// Options that a client may send before it begins.
const OPTIONS_MAX: u32 = 256;
/// Zeros that end the reply to `EXPORT_NAME`.
const PADDING: [u8; 124] = [0; 124];

/// What a client and the server agreed on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreed {
    /// Reads are answered in chunks.
    pub(super) structured: bool,
    /// The client chose `base:allocation`.
    pub(super) allocation: bool,
}

/// What is offered.
pub(super) struct Offer<'a> {
    pub(super) device: &'a dyn BlockDevice,
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    /// How long the whole handshake may take.
    pub(super) patience: Duration,
}

/// What an option leads to.
enum Next {
    Go,
    On,
}

impl Offer<'_> {
    /// Agrees with a client; [`Gone::Ended`] if it only wanted to look.
    pub(super) fn shake(&self, socket: &Socket, input: &mut Input<'_>) -> Result<Agreed, Gone> {
        let begin = Instant::now();
        let mut greeting = Vec::with_capacity(18);
        greeting.extend(INIT_MAGIC.to_be_bytes());
        greeting.extend(OPTION_MAGIC.to_be_bytes());
        greeting.extend((hello::FIXED_NEWSTYLE | hello::NO_ZEROES).to_be_bytes());
        socket.write_all(&greeting)?;
        let flags = input.need_u32()?;
        if flags & !u32::from(hello::FIXED_NEWSTYLE | hello::NO_ZEROES) != 0 {
            return Err(Gone::Dropped(format!("it asks for flags {flags:#x}, which this handshake does not have")));
        }
        let padded = flags & u32::from(hello::NO_ZEROES) == 0;
        let mut agreed = Agreed::default();
        for _ in 0..OPTIONS_MAX {
            if begin.elapsed() > self.patience {
                return Err(Gone::Dropped("its handshake takes too long".to_owned()));
            }
            input.wait_for(16, Wait::Between)?;
            let magic = input.need_u64()?;
            if magic != OPTION_MAGIC {
                return Err(Gone::Dropped(format!("an option begins with {magic:#018x}, not {OPTION_MAGIC:#018x}")));
            }
            let (option, length) = (input.need_u32()?, input.need_u32()? as usize);
            if length > SKIPPED_MAX {
                return Err(Gone::Dropped(format!("option {option} has {length} B")));
            }
            let mut reply = Reply { option, bytes: Vec::new() };
            if length > OPTION_MAX {
                input.skip(length)?;
                reply.add(option_reply::ERR_TOO_BIG, b"options have at most 64 KiB");
                socket.write_all(&reply.bytes)?;
                continue;
            }
            let data = input.need(length)?;
            if option == option::EXPORT_NAME {
                return self.begin_by_name(socket, data, padded).map(|()| agreed);
            }
            let next = self.answer(&mut agreed, data, &mut reply);
            socket.write_all(&reply.bytes)?;
            match next {
                Next::Go => return Ok(agreed),
                Next::On if option == option::ABORT => return Err(Gone::Ended),
                Next::On => {}
            }
        }
        Err(Gone::Dropped(format!("it sent {OPTIONS_MAX} options and did not begin")))
    }

    fn begin_by_name(&self, socket: &Socket, name: &[u8], padded: bool) -> Result<(), Gone> {
        if !self.is_named(name) {
            return Err(Gone::Dropped(format!("there is no export {:?}", String::from_utf8_lossy(name))));
        }
        let mut reply = self.size_and_flags();
        if padded {
            reply.extend(PADDING);
        }
        Ok(socket.write_all(&reply)?)
    }

    /// The export has a name, and is what clients get that name none.
    fn is_named(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }

    fn answer(&self, agreed: &mut Agreed, data: &[u8], reply: &mut Reply) -> Next {
        match reply.option {
            option::ABORT => reply.add(option_reply::ACK, &[]),
            option::LIST if data.is_empty() => {
                let name = self.name.as_bytes();
                reply.add(option_reply::SERVER, &[&(name.len() as u32).to_be_bytes()[..], name].concat());
                reply.add(option_reply::ACK, &[]);
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                agreed.structured = true;
                reply.add(option_reply::ACK, &[]);
            }
            option::INFO | option::GO => {
                if self.describe(data, reply) && reply.option == option::GO {
                    return Next::Go;
                }
            }
            option::LIST_META_CONTEXT => {
                self.contexts(data, false, reply);
            }
            option::SET_META_CONTEXT if !agreed.structured => {
                reply.add(option_reply::ERR_INVALID, b"metadata contexts need structured replies: ask for those first");
            }
            option::SET_META_CONTEXT => agreed.allocation = self.contexts(data, true, reply),
            option::LIST | option::STRUCTURED_REPLY => {
                reply.add(option_reply::ERR_INVALID, b"this option has no data");
            }
            _ => reply.add(option_reply::ERR_UNSUP, b"this server does not have this option"),
        }
        Next::On
    }

    /// Answers `INFO` and `GO`; `false` after an error.
    fn describe(&self, data: &[u8], reply: &mut Reply) -> bool {
        let Some((name, wanted)) = name_and_wishes(data) else {
            reply.add(option_reply::ERR_INVALID, b"the lengths inside the option contradict its own");
            return false;
        };
        if !self.is_named(name) {
            reply.add(option_reply::ERR_UNKNOWN, b"there is no export of this name");
            return false;
        }
        let sizes = self.device.block_sizes();
        let mut add =
            |kind: u16, bytes: &[u8]| reply.add(option_reply::INFO, &[&kind.to_be_bytes()[..], bytes].concat());
        add(info::EXPORT, &self.size_and_flags());
        let blocks = [sizes.minimum, sizes.preferred, PAYLOAD_MAX].map(u32::to_be_bytes).concat();
        add(info::BLOCK_SIZE, &blocks);
        for wish in wanted.chunks_exact(2).map(|wish| be16(wish, 0)) {
            match wish {
                info::NAME => add(info::NAME, self.name.as_bytes()),
                info::DESCRIPTION => add(info::DESCRIPTION, self.description.as_bytes()),
                _ => {}
            }
        }
        reply.add(option_reply::ACK, &[]);
        true
    }

    fn size_and_flags(&self) -> Vec<u8> {
        let mut flags = export::HAS_FLAGS | export::SEND_FLUSH | export::SEND_DF | export::CAN_MULTI_CONN;
        flags |= match self.device.read_only() {
            true => export::READ_ONLY,
            false => export::SEND_FUA | export::SEND_TRIM | export::SEND_WRITE_ZEROES | export::SEND_FAST_ZERO,
        };
        [&self.device.size_bytes().to_be_bytes()[..], &flags.to_be_bytes()].concat()
    }

    /// Answers a question for metadata contexts; `true` if `base:allocation` is among the answers.
    fn contexts(&self, data: &[u8], set: bool, reply: &mut Reply) -> bool {
        let Some((name, queries)) = name_and_queries(data) else {
            reply.add(option_reply::ERR_INVALID, b"the lengths inside the option contradict its own");
            return false;
        };
        if !self.is_named(name) {
            reply.add(option_reply::ERR_UNKNOWN, b"there is no export of this name");
            return false;
        }
        let (context, id) = ALLOCATION;
        let all = !set && (queries.is_empty() || queries.contains(&&b"base:"[..]));
        let found = all || queries.contains(&context.as_bytes());
        if found {
            let id = if set { id } else { 0 };
            reply.add(option_reply::META_CONTEXT, &[&id.to_be_bytes()[..], context.as_bytes()].concat());
        }
        reply.add(option_reply::ACK, &[]);
        found
    }
}

/// Replies to one option.
struct Reply {
    option: u32,
    bytes: Vec<u8>,
}

impl Reply {
    fn add(&mut self, kind: u32, data: &[u8]) {
        self.bytes.extend(OPTION_REPLY_MAGIC.to_be_bytes());
        for word in [self.option, kind, data.len() as u32] {
            self.bytes.extend(word.to_be_bytes());
        }
        self.bytes.extend(data);
    }
}

/// A length, so many bytes, and the rest; `None` if there are fewer.
fn counted(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_at_checked(4)?;
    rest.split_at_checked(be32(length, 0) as usize)
}

/// The name of an export, and numbers of two bytes each.
fn name_and_wishes(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = counted(data)?;
    let (count, wishes) = rest.split_at_checked(2)?;
    (wishes.len() == 2 * usize::from(be16(count, 0))).then_some((name, wishes))
}

/// The name of an export, and queries.
fn name_and_queries(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let (name, rest) = counted(data)?;
    let (count, mut rest) = rest.split_at_checked(4)?;
    let mut queries = Vec::new();
    for _ in 0..be32(count, 0) {
        let (query, more) = counted(rest)?;
        queries.push(query);
        rest = more;
    }
    rest.is_empty().then_some((name, queries))
}
