//! What clients are told, and what their requests do.

use crate::client::{Ask, Client, connect, counted, greet, option, option_replies, take};
use crate::serving::{Served, memory_disk};
use openftl_blockdev::nbd::protocol::{command, errno, export, flag, info, option, option_reply};
use openftl_blockdev::nbd::{Address, Listener, ServerOptions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

const PAGE: u64 = 4096;

#[test]
fn a_client_learns_size_flags_and_block_sizes() {
    let served = Served::memory(ServerOptions::default());
    let client = Client::structured(&served.path());
    assert_eq!(client.size, 512 * PAGE);
    let wanted = export::HAS_FLAGS
        | export::SEND_FLUSH
        | export::SEND_FUA
        | export::SEND_TRIM
        | export::SEND_WRITE_ZEROES
        | export::SEND_DF
        | export::CAN_MULTI_CONN
        | export::SEND_FAST_ZERO;
    assert_eq!(client.flags, wanted);

    let mut stream = connect(&served.path());
    greet(&mut stream, 3);
    let wishes = [counted(b"disk"), vec![0, 2, 0, info::NAME as u8, 0, info::DESCRIPTION as u8]].concat();
    option(&mut stream, option::INFO, &wishes);
    let replies = option_replies(&mut stream, option::INFO);
    let said = |kind: u16| {
        let found =
            replies.iter().find(|(reply, data)| *reply == option_reply::INFO && data[..2] == kind.to_be_bytes());
        found.unwrap().1[2..].to_vec()
    };
    assert_eq!(said(info::BLOCK_SIZE), [1_u32, 4096, 32 << 20].map(u32::to_be_bytes).concat());
    assert_eq!(said(info::NAME), b"disk");
    assert!(!said(info::DESCRIPTION).is_empty());
}

#[test]
fn options_are_answered_by_what_they_ask() {
    let served = Served::memory(ServerOptions::default());
    let mut stream = connect(&served.path());
    greet(&mut stream, 3);
    let mut ask = |number: u32, data: &[u8]| {
        option(&mut stream, number, data);
        option_replies(&mut stream, number)
    };
    assert_eq!(ask(option::LIST, &[])[0], (option_reply::SERVER, counted(b"disk")));
    let elsewhere = [counted(b"other"), vec![0, 0]].concat();
    assert_eq!(ask(option::GO, &elsewhere)[0].0, option_reply::ERR_UNKNOWN);
    assert_eq!(ask(option::GO, &[0, 0])[0].0, option_reply::ERR_INVALID);
    assert_eq!(ask(option::GO, &[0xFF; 64])[0].0, option_reply::ERR_INVALID);
    assert_eq!(ask(99, b"?")[0].0, option_reply::ERR_UNSUP);
    assert_eq!(ask(option::LIST, &vec![0; 100_000])[0].0, option_reply::ERR_TOO_BIG);
    let queries = |names: &[&[u8]]| {
        let count = (names.len() as u32).to_be_bytes().to_vec();
        [counted(b""), count, names.iter().flat_map(|name| counted(name)).collect()].concat()
    };
    assert_eq!(ask(option::SET_META_CONTEXT, &queries(&[b"base:allocation"]))[0].0, option_reply::ERR_INVALID);
    let context = (option_reply::META_CONTEXT, [&[0; 4], &b"base:allocation"[..]].concat());
    for all in [queries(&[]), queries(&[b"base:"])] {
        assert_eq!(ask(option::LIST_META_CONTEXT, &all)[0], context);
    }
    assert_eq!(ask(option::LIST_META_CONTEXT, &queries(&[b"qemu:dirty"])), [(option_reply::ACK, vec![])]);
    assert_eq!(ask(option::ABORT, &[]), [(option_reply::ACK, vec![])]);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the server closes after an abort");
}

#[test]
fn the_oldest_way_to_begin_works_with_and_without_padding() {
    let served = Served::memory(ServerOptions::default());
    for (flags, padding) in [(1, 124), (3, 0)] {
        let mut stream = connect(&served.path());
        greet(&mut stream, flags);
        option(&mut stream, option::EXPORT_NAME, b"disk");
        assert_eq!(u64::from_be_bytes(take(&mut stream)), 512 * PAGE);
        let _flags: [u8; 2] = take(&mut stream);
        let mut zeros = vec![1; padding];
        stream.read_exact(&mut zeros).unwrap();
        assert!(zeros.iter().all(|byte| *byte == 0));
        let mut client = Client { stream, ..Client::simple(&served.path()) };
        assert_eq!(client.read(0, 16).data, vec![0; 16]);
    }
}

#[test]
fn what_is_written_is_read_over_any_connection_in_either_form() {
    let disk = Arc::new(memory_disk("gecko", 3, |_| {}));
    let served = Served::new(disk, ServerOptions::default());
    let (mut simple, mut chunks) = (Client::simple(&served.path()), Client::structured(&served.path()));
    let data: Vec<u8> = (0..700_001_u32).map(|i| (i * 7 + i / 251) as u8).collect();
    assert_eq!(simple.write(12_345, &data, 0), 0);
    for client in [&mut simple, &mut chunks] {
        let answer = client.read(12_345, data.len() as u32);
        assert!(answer.errno == 0 && answer.data == data);
        assert_eq!(client.read(12_344, 3).data, [0, data[0], data[1]]);
    }
    let whole = Ask { command: command::READ, flags: flag::DF, offset: 12_345, bytes: 700_001 };
    assert_eq!(chunks.ask(whole, &[]).data, data);
    assert_eq!(chunks.write(100, &data[..400_000], flag::FUA), 0);
    assert_eq!(simple.command(command::FLUSH, 0, 0, 0), 0);
    assert_eq!(simple.read(100, 400_000).data, data[..400_000]);
}

#[test]
fn many_requests_in_flight_are_all_answered() {
    let served = Served::memory(ServerOptions::default());
    let mut client = Client::structured(&served.path());
    let pages = 200_u64;
    let page = |i: u64| vec![i as u8 + 1; PAGE as usize];
    let write = |i: u64| Ask { command: command::WRITE, offset: i * PAGE, bytes: PAGE as u32, flags: 0 };
    let cookies: Vec<u64> = (0..pages).map(|i| client.send(write(i), &page(i))).collect();
    for (i, cookie) in (0..).zip(cookies) {
        assert_eq!(client.receive(write(i), cookie).errno, 0);
    }
    let read = |i: u64| Ask { command: command::READ, ..write(i) };
    let cookies: Vec<u64> = (0..pages).map(|i| client.send(read(i), &[])).collect();
    for (i, cookie) in (0..).zip(cookies) {
        assert_eq!(client.receive(read(i), cookie).data, page(i), "page {i}");
    }
}

#[test]
fn trims_and_zeroes_read_as_zeros_and_show_as_holes() {
    let served = Served::memory(ServerOptions::default());
    let mut client = Client::structured(&served.path());
    let all = client.size as u32;
    assert_eq!(client.status(0, 0, all), [(all, 3)]);
    assert_eq!(client.write(0, &[7; 10 * PAGE as usize], 0), 0);
    assert_eq!(client.status(0, 0, all), [(40_960, 0), (all - 40_960, 3)]);
    // Parts of pages keep their contents in a trim, and become zeros in a zeroing.
    assert_eq!(client.command(command::TRIM, 0, 100, 2 * PAGE as u32), 0);
    assert_eq!(client.status(0, 0, 40_960), [(4096, 0), (4096, 3), (32_768, 0)]);
    assert_eq!(client.read(PAGE - 1, 3).data, [7, 0, 0]);
    assert_eq!(client.read(2 * PAGE - 1, 2).data, [0, 7]);
    assert_eq!(client.command(command::WRITE_ZEROES, 0, 4 * PAGE - 1, PAGE as u32 + 2), 0);
    assert_eq!(client.read(4 * PAGE - 2, 5000).data[..2], [7, 0]);
    assert_eq!(client.read(5 * PAGE, 3).data, [0, 7, 7]);
    assert_eq!(client.status(flag::REQ_ONE, 4 * PAGE, 8192), [(4096, 3)]);
    assert_eq!(client.command(command::WRITE_ZEROES, flag::NO_HOLE | flag::FUA, 6 * PAGE, PAGE as u32), 0);
    assert_eq!((client.status(0, 6 * PAGE, 4096), client.read(6 * PAGE, 2).data), (vec![(4096, 0)], vec![0, 0]));
    let fast = |flags| flags | flag::FAST_ZERO;
    assert_eq!(client.command(command::WRITE_ZEROES, fast(0), 7 * PAGE, PAGE as u32), 0);
    assert_eq!(client.command(command::WRITE_ZEROES, fast(flag::NO_HOLE), 8 * PAGE, PAGE as u32), errno::ENOTSUP);
    assert_eq!(client.read(8 * PAGE, 1).data, [7]);
    // A write after a trim that was not yet told to the FTL stays.
    assert_eq!(client.command(command::TRIM, 0, 0, all), 0);
    assert_eq!(client.write(PAGE, b"new", 0), 0);
    assert_eq!(client.command(command::FLUSH, 0, 0, 0), 0);
    assert_eq!(client.read(PAGE - 1, 5).data, [0, b'n', b'e', b'w', 0]);
}

#[test]
fn requests_beyond_the_end_and_unknown_ones_are_errors_and_nothing_more() {
    let served = Served::memory(ServerOptions::default());
    for mut client in [Client::simple(&served.path()), Client::structured(&served.path())] {
        let size = client.size;
        for (offset, bytes) in [(size, 1), (size - 1, 2), (u64::MAX, 1), (u64::MAX - 5, 100), (0, u32::MAX)] {
            assert_eq!(client.read(offset, bytes).errno, errno::EINVAL);
            assert_eq!(client.command(command::TRIM, 0, offset, bytes), errno::EINVAL);
            assert_eq!(client.command(command::WRITE_ZEROES, 0, offset, bytes), errno::ENOSPC);
        }
        assert_eq!(client.write(size - 1, &[1; 600_000], 0), errno::ENOSPC);
        assert_eq!(client.write(u64::MAX - 10, &[1; 600_000], flag::FUA), errno::ENOSPC);
        assert_eq!(client.command(77, 0, 0, 0), errno::EINVAL);
        assert_eq!(client.command(command::FLUSH, 1 << 9, 0, 0), errno::EINVAL);
        assert_eq!(client.write(0, &[1; 4096], 1 << 9), errno::EINVAL);
        assert_eq!(client.read(size - 1, 1), crate::client::Answer { errno: 0, data: vec![0] });
    }
    let mut simple = Client::simple(&served.path());
    assert_eq!(simple.command(command::BLOCK_STATUS, 0, 0, 4096), errno::EINVAL);
}

#[test]
fn a_read_only_disk_says_so_and_refuses_changes() {
    let disk = Arc::new(memory_disk("page", 1, |options| options.read_only = true));
    let served = Served::new(disk, ServerOptions::default());
    let mut client = Client::structured(&served.path());
    assert_eq!(client.flags & (export::READ_ONLY | export::SEND_TRIM), export::READ_ONLY);
    assert_eq!(client.write(0, &[1; 4096], 0), errno::EPERM);
    assert_eq!(client.command(command::TRIM, 0, 0, 4096), errno::EPERM);
    assert_eq!(client.command(command::WRITE_ZEROES, 0, 0, 4096), errno::EPERM);
    assert_eq!(client.command(command::FLUSH, 0, 0, 0), 0);
    assert_eq!(client.read(0, 2).data, [0, 0]);
}

#[test]
fn stopping_answers_what_has_arrived_and_removes_the_socket() {
    let mut served = Served::memory(ServerOptions::default());
    let mode = std::fs::metadata(served.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "the socket is its owner's");
    let (mut busy, _idle) = (Client::simple(&served.path()), Client::simple(&served.path()));
    assert_eq!(busy.write(0, b"kept", 0), 0);
    served.end();
    assert!(!served.path().exists());
    assert_eq!(busy.stream.read(&mut [0]).unwrap(), 0);
    let mut kept = [0; 4];
    served.server.device().read(0, &mut kept).unwrap();
    assert_eq!(&kept, b"kept");
    let writes = served.server.stats().snapshot().of(openftl_blockdev::stats::Op::Write).clone();
    assert_eq!((writes.count, writes.bytes, served.server.stats().connections()), (1, 4, (0, 2)));
}

#[test]
fn a_stale_socket_is_replaced_and_a_living_one_or_a_file_is_not() {
    let served = Served::memory(ServerOptions::default());
    let address = Address::Unix(served.path());
    let error = Listener::bind(&address).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    let stale = served.folder().join("stale");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    assert!(stale.exists());
    drop(Listener::bind(&Address::Unix(stale.clone())).unwrap());
    assert!(!stale.exists());
    std::fs::write(&stale, "precious").unwrap();
    let error = Listener::bind(&Address::Unix(stale.clone())).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&stale).unwrap(), b"precious");
}
