//! Served disks, by a client of a few lines; `scripts/serve-test` has those of others.

use super::common::{folder, json_of, openftl, output_of};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

const PAGE: usize = 4096;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;

/// A server, killed with its value.
struct Server {
    process: Child,
    out: BufReader<ChildStdout>,
    /// What it said first.
    said: serde_json::Value,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_openftl"))
            .args(["serve", "--json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let said = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{arguments:?} said `{line}`"));
        Self { process, out, said }
    }

    /// Stops it as a user would, and gives the rest of what it said.
    fn stop(mut self) -> serde_json::Value {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        assert!(self.process.wait().unwrap().success());
        serde_json::from_str(rest.lines().last().unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The oldest way to talk to a server: an export by its name, and simple replies.
struct Client {
    stream: UnixStream,
    bytes: u64,
}

impl Client {
    fn connect(path: &Path) -> Self {
        let mut stream = UnixStream::connect(path).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        let name = b"disk";
        stream.write_all(&3_u32.to_be_bytes()).unwrap();
        stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\x04").unwrap();
        stream.write_all(name).unwrap();
        let mut size = [0; 8];
        stream.read_exact(&mut size).unwrap();
        stream.read_exact(&mut [0; 2]).unwrap();
        Self { stream, bytes: u64::from_be_bytes(size) }
    }

    /// Asks, and gives the error number and the data of the reply.
    fn ask(&mut self, command: u16, offset: u64, bytes: usize, data: &[u8]) -> (u32, Vec<u8>) {
        let head = [&0x2560_9513_u32.to_be_bytes()[..], &[0; 2], &command.to_be_bytes(), &[7; 8]].concat();
        let tail = [&offset.to_be_bytes()[..], &(bytes as u32).to_be_bytes(), data].concat();
        self.stream.write_all(&[head, tail].concat()).unwrap();
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply).unwrap();
        let errno = u32::from_be_bytes([reply[4], reply[5], reply[6], reply[7]]);
        let mut out = vec![0; if command == READ && errno == 0 { bytes } else { 0 }];
        self.stream.read_exact(&mut out).unwrap();
        (errno, out)
    }

    fn write(&mut self, page: usize, fill: u8) {
        assert_eq!(self.ask(WRITE, (page * PAGE) as u64, PAGE, &[fill; PAGE]).0, 0);
    }

    fn page(&mut self, page: usize) -> u8 {
        let (errno, data) = self.ask(READ, (page * PAGE) as u64, PAGE, &[]);
        assert!(errno == 0 && data.iter().all(|byte| *byte == data[0]));
        data[0]
    }
}

#[test]
fn a_disk_in_a_file_outlives_its_server_however_that_ends() {
    let folder = folder();
    let (image, socket) = (folder.path().join("disk.nand"), folder.path().join("socket"));
    let (image, nbd) = (image.to_str().unwrap(), format!("unix:{}", socket.display()));
    let trace = folder.path().join("requests.csv");
    output_of(&["format", image, "--capacity", "32MiB"]);
    let server = Server::start(&[image, "--nbd", &nbd, "--record", trace.to_str().unwrap(), "--stats", "3600"]);
    let mut client = Client::connect(&socket);
    assert_eq!(server.said["bytes"], client.bytes);
    for page in 0..50 {
        client.write(page, page as u8 + 1);
    }
    assert_eq!(client.ask(TRIM, 0, 10 * PAGE, &[]).0, 0);
    assert_eq!(client.ask(FLUSH, 0, 0, &[]).0, 0);
    let refused = openftl(&["serve", image, "--nbd", "unix:other"]);
    assert!(refused.code == 1 && refused.err.contains("another process has the device open"), "{}", refused.err);
    let total = server.stop();
    assert_eq!(total["total"]["requests"]["write"]["requests"], 50);
    assert!(!socket.exists());
    assert_eq!(json_of(&["inspect", image, "--quick", "--json"])["closed"], true);
    let described = json_of(&["trace", "info", trace.to_str().unwrap(), "--json"]);
    assert_eq!([&described["writes"], &described["trims"], &described["flushes"]], [50, 1, 1], "{described}");

    let killed = Server::start(&[image, "--nbd", &nbd, "--write-through"]);
    let mut client = Client::connect(&socket);
    client.write(3, 200);
    assert_eq!((client.page(5), client.page(20)), (0, 21));
    drop(killed);
    assert_eq!(json_of(&["inspect", image, "--quick", "--json"])["closed"], false);

    let before = fs::read(image).unwrap();
    let server = Server::start(&[image, "--nbd", &nbd, "--read-only"]);
    let mut client = Client::connect(&socket);
    assert_eq!((client.page(3), client.page(20)), (200, 21));
    assert_eq!(client.ask(WRITE, 0, PAGE, &[1; PAGE]).0, 1, "a write of a read-only disk is refused");
    server.stop();
    assert!(fs::read(image).unwrap() == before, "the file was touched");
}

#[test]
fn a_disk_of_several_shards_in_a_file_outlives_its_server_and_a_part_set_back_is_seen() {
    let folder = folder();
    let (image, socket) = (folder.path().join("disk.nand"), folder.path().join("socket"));
    let (image, nbd) = (image.to_str().unwrap(), format!("unix:{}", socket.display()));
    output_of(&["format", image, "--capacity", "96MiB", "--shards", "3"]);
    let server = Server::start(&[image, "--nbd", &nbd]);
    assert!(server.said["description"].as_str().unwrap().ends_with("under gecko over 3 shards"), "{}", server.said);
    let mut client = Client::connect(&socket);
    // A page of each stripe, so that every shard has some.
    let pages: Vec<usize> = (0..60).map(|stripe| 16 * stripe + stripe % 16).collect();
    pages.iter().for_each(|page| client.write(*page, 1));
    assert_eq!(client.ask(FLUSH, 0, 0, &[]).0, 0);
    drop(server);
    let before = fs::read(image).unwrap();
    let server = Server::start(&[image, "--nbd", &nbd]);
    let mut client = Client::connect(&socket);
    assert!(pages.iter().all(|page| client.page(*page) == 1));
    pages.iter().for_each(|page| client.write(*page, 2));
    assert_eq!(client.ask(FLUSH, 0, 0, &[]).0, 0);
    drop(server);
    let described = json_of(&["inspect", image, "--json"]);
    assert_eq!(
        [&described["closed"], &described["pages"]["live"]],
        [&false.into(), &60.into()] as [&serde_json::Value; 2]
    );

    let server = Server::start(&[image, "--nbd", &nbd, "--read-only"]);
    let mut client = Client::connect(&socket);
    assert!(pages.iter().all(|page| client.page(*page) == 2), "what was flushed is there");
    drop(server);
    let mut mixed = fs::read(image).unwrap();
    let each = mixed.len() / 3;
    mixed[each..2 * each].copy_from_slice(&before[each..2 * each]);
    fs::write(image, &mixed).unwrap();
    let server = Server::start(&[image, "--nbd", &nbd, "--read-only"]);
    let mut client = Client::connect(&socket);
    let old = pages.iter().filter(|page| client.page(**page) == 1).count();
    assert_eq!(old, 20, "those of the shard that was set back, and no others");
    drop(server);
}

#[test]
fn a_disk_of_banks_in_a_file_keeps_what_was_flushed() {
    let folder = folder();
    let (image, socket) = (folder.path().join("disk.nand"), folder.path().join("socket"));
    let (image, nbd) = (image.to_str().unwrap(), format!("unix:{}", socket.display()));
    let size = ["--device", "demo", "--capacity", "256MiB", "--logical-ratio", "0.5"];
    let made = output_of(&[&["format", image, "--ftl", "lftl"][..], &size].concat());
    assert!(made.contains("under lftl over 32 banks"), "{made}");
    let server = Server::start(&[image, "--nbd", &nbd, "--workers", "3", "--policy", "pllgc", "--collectors", "2"]);
    assert!(server.said["description"].as_str().unwrap().ends_with("under lftl over 32 banks"), "{}", server.said);
    let mut client = Client::connect(&socket);
    for page in 0..200 {
        client.write(page, page as u8 | 1);
    }
    assert_eq!(client.ask(TRIM, 0, 10 * PAGE, &[]).0, 0);
    assert_eq!(client.ask(FLUSH, 0, 0, &[]).0, 0);
    client.write(20, 250);
    drop(server);
    let described = json_of(&["inspect", image, "--json"]);
    assert_eq!(
        [&described["closed"], &described["disk"]["ftl"]],
        [&false.into(), &"lftl".into()] as [&serde_json::Value; 2]
    );
    assert_eq!([&described["format_version"], &described["disk"]["banks"], &described["pages"]["live"]], [5, 32, 190]);

    let server = Server::start(&[image, "--nbd", &nbd, "--write-through", "--policy", "npgc"]);
    let mut client = Client::connect(&socket);
    assert_eq!((client.page(5), client.page(30), client.page(199)), (0, 31, 199));
    assert!([21, 250].contains(&client.page(20)), "it was not flushed");
    client.write(3, 200);
    drop(server);
    let before = fs::read(image).unwrap();
    let server = Server::start(&[image, "--nbd", &nbd, "--read-only"]);
    let mut client = Client::connect(&socket);
    assert_eq!((client.page(3), client.page(30)), (200, 31));
    assert_eq!(client.ask(WRITE, 0, PAGE, &[1; PAGE]).0, 1, "a write of a read-only disk is refused");
    assert_eq!(client.ask(TRIM, 0, PAGE, &[]).0, 1, "so is a trim");
    server.stop();
    assert!(fs::read(image).unwrap() == before, "the file was touched");

    let server = Server::start(&[image, "--nbd", &nbd]);
    Client::connect(&socket).write(7, 77);
    server.stop();
    let checked = json_of(&["check", image, "--json"]);
    assert_eq!([&checked["sound"], &checked["ftl"]], [&true.into(), &"lftl".into()] as [&serde_json::Value; 2]);
    assert_eq!(json_of(&["inspect", image, "--quick", "--json"])["closed"], true, "it was not saved");
}

#[test]
fn what_a_server_did_is_said_to_prometheus() {
    let folder = folder();
    let socket = folder.path().join("socket");
    let nbd = format!("unix:{}", socket.display());
    let memory = ["--memory", "--ftl", "dftl", "--capacity", "64MiB", "--shards", "2", "--delays"];
    let server = Server::start(&[&memory[..], &["--nbd", &nbd, "--metrics", "tcp:0"]].concat());
    let mut client = Client::connect(&socket);
    client.write(1, 1);
    assert_eq!(client.page(1), 1);
    let address = server.said["metrics"].as_str().unwrap().strip_prefix("tcp:").unwrap();
    let mut http = TcpStream::connect(address).unwrap();
    http.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut answer = String::new();
    http.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for line in ["openftl_requests_total{op=\"write\"} 1", "openftl_connections 1", "openftl_host_pages_total 1"] {
        assert!(answer.lines().any(|found| found == line), "{line} in {answer}");
    }
    assert!(server.stop()["total"]["write_amplification"].as_f64().unwrap() >= 1.0);
}

#[test]
fn what_cannot_be_served_is_refused_before_anybody_connects() {
    let folder = folder();
    let path = folder.path().join("disk.nand");
    let image = path.to_str().unwrap();
    output_of(&["format", image, "--capacity", "32MiB"]);
    let refused = |code: i32, arguments: &[&str], wanted: &str| {
        let ran = openftl(&[&["serve"], arguments].concat());
        assert!(ran.code == code && ran.err.contains(wanted), "{arguments:?}: {} {}", ran.code, ran.err);
    };
    let socket = format!("unix:{}", folder.path().join("socket").display());
    refused(2, &["--nbd", &socket], "<IMAGE>");
    refused(2, &[image, "--memory", "--nbd", &socket], "cannot be used with");
    refused(2, &[image, "--nbd", "somewhere"], "give unix:PATH, tcp:PORT or tcp:HOST:PORT");
    refused(2, &[image, "--nbd", "tcp:0.0.0.0:10809"], "say --allow-remote");
    refused(
        2,
        &[image, "--nbd", &socket, "--metrics", "tcp:0.0.0.0:9100"],
        "--metrics tcp:0.0.0.0:9100 can be reached",
    );
    refused(2, &[image, "--nbd", &socket, "--gecko-t", "3"], "--gecko-t is for --memory");
    refused(2, &[image, "--nbd", &socket, "--shards", "3"], "--shards is for --memory");
    refused(2, &[image, "--nbd", &socket, "--ftl", "page"], "--ftl is for --memory");
    refused(2, &[image, "--nbd", &socket, "--workers", "4"], "--workers is for disks of lftl");
    refused(2, &["--memory", "--nbd", &socket, "--capacity", "32MiB", "--shards", "64"], "each of 64 shards");
    refused(2, &["--memory", "--nbd", &socket, "--ftl", "bast", "--maps", "nonvolatile"], "memory that no disk");
    refused(1, &["nowhere.nand", "--nbd", &socket], "cannot open nowhere.nand");
    refused(1, &[image, "--nbd", &format!("unix:{image}")], "that is no socket");
    refused(1, &[image, "--nbd", &socket, "--record", image], "cannot record to");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was left behind");
}
