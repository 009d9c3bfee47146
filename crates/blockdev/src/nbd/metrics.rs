//! Numbers for Prometheus over HTTP: every request is answered with all of them.

use super::listen::Listener;
use super::server::Stop;
use super::socket::{Input, Socket, Wait};
use crate::contract::BlockDevice;
use crate::log::{Log, Severity};
use crate::stats::Stats;
use std::net::Shutdown;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long a client may take for its request, or for our answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(100);
/// The longest request line that is looked at.
const LINE_MAX: usize = 4096;

/// Answers requests for numbers, one at a time, until it is stopped.
pub fn run(device: &dyn BlockDevice, stats: &Stats, listener: &Listener, stop: &Stop, log: &dyn Log) {
    while !stop.wait(LOOK) {
        while let Ok(socket) = listener.accept() {
            let answered = socket.set_patience(PATIENCE).map_err(|error| error.to_string());
            if let Err(why) = answered.and_then(|()| answer(device, stats, &socket)) {
                log.line(Severity::Warning, &format!("a request for metrics was dropped: {why}"));
            }
            socket.shutdown(Shutdown::Both);
        }
    }
}

fn answer(device: &dyn BlockDevice, stats: &Stats, socket: &Socket) -> Result<(), String> {
    let never = AtomicBool::new(false);
    let mut input = Input::new(socket, &never, PATIENCE);
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        if line.len() == LINE_MAX {
            return Err(format!("its request line is longer than {LINE_MAX} B"));
        }
        if input.wait_for(1, Wait::Between).is_err() {
            return Err("it sent no request".to_owned());
        }
        line.extend(input.take(1));
    }
    let line = String::from_utf8_lossy(&line);
    let mut words = line.split_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics" | "/")) => match device.report() {
            Ok(report) => ("200 OK", stats.prometheus(&report, device.size_bytes())),
            Err(error) => ("500 Internal Server Error", format!("{error}\n")),
        },
        (Some("GET"), _) => ("404 Not Found", "numbers are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET is answered\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(&[head.as_bytes(), body.as_bytes()].concat()).map_err(|error| error.to_string())
}
