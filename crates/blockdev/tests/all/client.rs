//! A client of the protocol, small and strict, and one that says anything.

use openftl_blockdev::nbd::protocol::{
    INIT_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, REQUEST_MAGIC, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk,
    command, option, option_reply,
};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A request, to be changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask {
    pub command: u16,
    pub flags: u16,
    pub offset: u64,
    pub bytes: u32,
}

/// A reply: an error or 0, and what came with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub errno: u32,
    pub data: Vec<u8>,
}

pub struct Client {
    pub stream: UnixStream,
    pub structured: bool,
    pub size: u64,
    pub flags: u16,
    pub cookie: u64,
}

pub fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Sends an option.
pub fn option(stream: &mut UnixStream, option: u32, data: &[u8]) {
    let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    stream.write_all(&bytes).unwrap();
}

/// Reads a reply to an option: its kind and its data.
pub fn option_reply(stream: &mut UnixStream, option: u32) -> (u32, Vec<u8>) {
    assert_eq!(u64::from_be_bytes(take(stream)), OPTION_REPLY_MAGIC);
    assert_eq!(u32::from_be_bytes(take(stream)), option);
    let kind = u32::from_be_bytes(take(stream));
    let mut data = vec![0; u32::from_be_bytes(take(stream)) as usize];
    stream.read_exact(&mut data).unwrap();
    (kind, data)
}

/// Reads the replies to an option up to the last.
pub fn option_replies(stream: &mut UnixStream, number: u32) -> Vec<(u32, Vec<u8>)> {
    let mut replies = vec![option_reply(stream, number)];
    while replies.last().is_some_and(|(kind, _)| *kind != option_reply::ACK && *kind < 0x8000_0000) {
        replies.push(option_reply(stream, number));
    }
    replies
}

pub fn take<const BYTES: usize>(stream: &mut UnixStream) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Reads the greeting and answers it.
pub fn greet(stream: &mut UnixStream, flags: u32) {
    assert_eq!(u64::from_be_bytes(take(stream)), INIT_MAGIC);
    assert_eq!(u64::from_be_bytes(take(stream)), OPTION_MAGIC);
    assert_eq!(u16::from_be_bytes(take(stream)), 3);
    stream.write_all(&flags.to_be_bytes()).unwrap();
}

/// A length and so many bytes.
pub fn counted(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

impl Client {
    pub fn simple(path: &Path) -> Self {
        Self::begin(path, false)
    }

    pub fn structured(path: &Path) -> Self {
        Self::begin(path, true)
    }

    fn begin(path: &Path, structured: bool) -> Self {
        let mut stream = connect(path);
        greet(&mut stream, 3);
        if structured {
            option(&mut stream, option::STRUCTURED_REPLY, &[]);
            assert_eq!(option_reply(&mut stream, option::STRUCTURED_REPLY).0, option_reply::ACK);
            let query = [counted(b""), 1_u32.to_be_bytes().to_vec(), counted(b"base:allocation")].concat();
            option(&mut stream, option::SET_META_CONTEXT, &query);
            let replies = option_replies(&mut stream, option::SET_META_CONTEXT);
            assert_eq!(replies[0], (option_reply::META_CONTEXT, [&[0, 0, 0, 1], &b"base:allocation"[..]].concat()));
        }
        option(&mut stream, option::GO, &[counted(b""), vec![0, 0]].concat());
        let replies = option_replies(&mut stream, option::GO);
        let export = &replies.iter().find(|(kind, data)| *kind == option_reply::INFO && data[..2] == [0, 0]).unwrap().1;
        let size = u64::from_be_bytes(export[2..10].try_into().unwrap());
        let flags = u16::from_be_bytes(export[10..].try_into().unwrap());
        Self { stream, structured, size, flags, cookie: 0 }
    }

    /// Sends a request; answers its cookie.
    pub fn send(&mut self, ask: Ask, data: &[u8]) -> u64 {
        self.cookie += 1;
        let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
        bytes.extend(ask.flags.to_be_bytes());
        bytes.extend(ask.command.to_be_bytes());
        bytes.extend(self.cookie.to_be_bytes());
        bytes.extend(ask.offset.to_be_bytes());
        bytes.extend(ask.bytes.to_be_bytes());
        bytes.extend(data);
        self.stream.write_all(&bytes).unwrap();
        self.cookie
    }

    /// Reads the reply to a request. Chunks of a read are put in place.
    pub fn receive(&mut self, ask: Ask, cookie: u64) -> Answer {
        let mut answer = Answer { errno: 0, data: Vec::new() };
        loop {
            let magic = u32::from_be_bytes(take(&mut self.stream));
            if magic == SIMPLE_REPLY_MAGIC {
                answer.errno = u32::from_be_bytes(take(&mut self.stream));
                assert_eq!(u64::from_be_bytes(take(&mut self.stream)), cookie);
                assert!(!(self.structured && ask.command == command::READ), "a read is answered in chunks");
                if ask.command == command::READ && answer.errno == 0 {
                    answer.data = vec![0; ask.bytes as usize];
                    self.stream.read_exact(&mut answer.data).unwrap();
                }
                return answer;
            }
            assert_eq!(magic, STRUCTURED_REPLY_MAGIC);
            let (flags, kind) =
                (u16::from_be_bytes(take(&mut self.stream)), u16::from_be_bytes(take(&mut self.stream)));
            assert_eq!(u64::from_be_bytes(take(&mut self.stream)), cookie);
            let mut data = vec![0; u32::from_be_bytes(take(&mut self.stream)) as usize];
            self.stream.read_exact(&mut data).unwrap();
            match kind {
                chunk::OFFSET_DATA => {
                    let at = (u64::from_be_bytes(data[..8].try_into().unwrap()) - ask.offset) as usize;
                    answer.data.resize(ask.bytes as usize, 0xEE);
                    answer.data[at..at + data.len() - 8].copy_from_slice(&data[8..]);
                }
                chunk::NONE => assert!(data.is_empty()),
                chunk::BLOCK_STATUS => answer.data = data,
                _ if kind >= 0x8000 => answer.errno = u32::from_be_bytes(data[..4].try_into().unwrap()),
                other => panic!("chunk of kind {other}"),
            }
            if flags & chunk::DONE != 0 {
                return answer;
            }
        }
    }

    pub fn ask(&mut self, ask: Ask, data: &[u8]) -> Answer {
        let cookie = self.send(ask, data);
        self.receive(ask, cookie)
    }

    pub fn read(&mut self, offset: u64, bytes: u32) -> Answer {
        self.ask(Ask { command: command::READ, offset, bytes, ..Ask::default() }, &[])
    }

    pub fn write(&mut self, offset: u64, data: &[u8], flags: u16) -> u32 {
        let ask = Ask { command: command::WRITE, flags, offset, bytes: data.len() as u32 };
        self.ask(ask, data).errno
    }

    /// A command without data.
    pub fn command(&mut self, command: u16, flags: u16, offset: u64, bytes: u32) -> u32 {
        self.ask(Ask { command, flags, offset, bytes }, &[]).errno
    }

    /// Extents of a range: lengths and states.
    pub fn status(&mut self, flags: u16, offset: u64, bytes: u32) -> Vec<(u32, u32)> {
        let answer = self.ask(Ask { command: command::BLOCK_STATUS, flags, offset, bytes }, &[]);
        assert_eq!((answer.errno, &answer.data[..4]), (0, &[0, 0, 0, 1][..]));
        let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        answer.data[4..].chunks_exact(8).map(|pair| (word(&pair[..4]), word(&pair[4..]))).collect()
    }
}
