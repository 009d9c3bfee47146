//! Clients that mean harm, or are broken: each is dropped, and no other notices.

use crate::client::{Ask, Client, connect, greet};
use crate::serving::Served;
use openftl_blockdev::nbd::ServerOptions;
use openftl_blockdev::nbd::protocol::{OPTION_MAGIC, REQUEST_MAGIC, command};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn impatient() -> ServerOptions {
    ServerOptions { patience: Duration::from_millis(300), ..ServerOptions::default() }
}

/// Reads until the server closes.
fn wait_for_end(stream: &mut UnixStream) {
    // The server may have gone while bytes were on their way to it.
    let _ = stream.read_to_end(&mut Vec::new());
}

fn works(served: &Served) {
    let mut client = Client::structured(&served.path());
    assert_eq!(client.write(8192, b"still here", 0), 0);
    assert_eq!(client.read(8192, 10).data, b"still here");
}

#[test]
fn random_bytes_end_a_connection_and_nothing_else() {
    let served = Served::memory(impatient());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(150));
    let bytes = (0..5_usize, prop::collection::vec(any::<u8>(), 0..600));
    runner
        .run(&bytes, |(depth, bytes)| {
            let mut stream =
                if depth == 4 { Client::structured(&served.path()).stream } else { connect(&served.path()) };
            let before: Vec<u8> = match depth {
                0 | 4 => vec![],
                1 => 3_u32.to_be_bytes().to_vec(),
                2 => [&3_u32.to_be_bytes()[..], &OPTION_MAGIC.to_be_bytes()].concat(),
                _ => [&3_u32.to_be_bytes()[..], &OPTION_MAGIC.to_be_bytes(), &[0, 0, 0, 7, 0, 0, 1, 0]].concat(),
            };
            // It may be dropped before it has said everything.
            let _ = stream.write_all(&before).and_then(|()| stream.write_all(&bytes));
            let _ = stream.shutdown(Shutdown::Write);
            wait_for_end(&mut stream);
            Ok(())
        })
        .unwrap();
    works(&served);
}

#[test]
fn random_requests_are_answered_or_end_the_connection() {
    let served = Served::memory(impatient());
    let request = (0..9_u16, any::<u16>(), any::<u64>(), 0..200_000_u32, any::<bool>());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(100));
    runner
        .run(&prop::collection::vec(request, 1..20), |requests| {
            let mut client = Client::structured(&served.path());
            let size = client.size;
            for (command, flags, offset, bytes, inside) in requests {
                if command == command::DISCONNECT {
                    continue;
                }
                let offset = if inside { offset % size } else { offset };
                let ask = Ask { command, flags: flags & 0x1F, offset, bytes };
                let data = if command == command::WRITE { vec![9; bytes as usize] } else { vec![] };
                let _ = client.ask(ask, &data);
            }
            Ok(())
        })
        .unwrap();
    works(&served);
}

#[test]
fn a_request_cut_short_is_dropped_with_a_line() {
    let served = Served::memory(impatient());
    let mut client = Client::simple(&served.path());
    let ask = Ask { command: command::WRITE, bytes: 100_000, ..Ask::default() };
    client.send(ask, &[1; 1000]);
    wait_for_end(&mut client.stream);
    served.log.wait_for("stopped in the middle of a request");
    let mut client = Client::simple(&served.path());
    client.send(ask, &[1; 1000]);
    client.stream.shutdown(Shutdown::Write).unwrap();
    wait_for_end(&mut client.stream);
    served.log.wait_for("closed in the middle of a request");
    let mut client = Client::simple(&served.path());
    client.stream.write_all(&[0; 28]).unwrap();
    wait_for_end(&mut client.stream);
    served.log.wait_for("a request begins with 0x00000000");
    let mut client = Client::simple(&served.path());
    client.send(Ask { bytes: u32::MAX, ..ask }, &[]);
    wait_for_end(&mut client.stream);
    served.log.wait_for("writes 4294967295 B at once");
    works(&served);
}

#[test]
fn who_says_nothing_in_the_handshake_is_dropped() {
    let served = Served::memory(impatient());
    let mut silent = connect(&served.path());
    let begin = Instant::now();
    wait_for_end(&mut silent);
    assert!(begin.elapsed() < Duration::from_secs(20));
    // One option after the other, for ever.
    let mut stream = connect(&served.path());
    greet(&mut stream, 3);
    let option = [&OPTION_MAGIC.to_be_bytes()[..], &[0, 0, 0, 3, 0, 0, 0, 0]].concat();
    for _ in 0..2000 {
        if stream.write_all(&option).is_err() {
            break;
        }
    }
    wait_for_end(&mut stream);
    served.log.wait_for("options and did not begin");
    works(&served);
}

#[test]
fn who_never_reads_replies_is_dropped_and_harms_no_other() {
    let served = Served::memory(impatient());
    let deaf = Client::simple(&served.path());
    deaf.stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut requests = Vec::new();
    for cookie in 0..50_u64 {
        requests.extend(REQUEST_MAGIC.to_be_bytes());
        requests.extend([0; 4]);
        requests.extend(cookie.to_be_bytes());
        requests.extend(0_u64.to_be_bytes());
        requests.extend((1_u32 << 20).to_be_bytes());
    }
    (&deaf.stream).write_all(&requests).unwrap();
    let begin = Instant::now();
    while served.log.count("does not take its replies") == 0 {
        works(&served);
        assert!(begin.elapsed() < Duration::from_secs(30), "it was not dropped");
    }
}

#[test]
fn hundreds_of_connections_are_bounded_and_leave_nothing_behind() {
    let served = Served::memory(ServerOptions { connections_max: 20, ..ServerOptions::default() });
    let mut open: Vec<UnixStream> = (0..300).map(|_| connect(&served.path())).collect();
    served.log.wait_for("which is the most that are served at once");
    let welcome = open.iter_mut().filter_map(|stream| stream.read(&mut [0; 18]).ok()).filter(|read| *read > 0).count();
    assert!((1..=20).contains(&welcome), "{welcome} were served");
    drop(open);
    let begin = Instant::now();
    loop {
        // Those that closed make room.
        let mut stream = connect(&served.path());
        if stream.read(&mut [0; 18]).is_ok_and(|read| read > 0) {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    works(&served);
}
