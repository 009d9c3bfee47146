//! What tells contents from others: hashes of this program and of traces.

use anyhow::{Context, Result};
use std::{env, fs};
use workload::trace::Trace;

/// FNV-1a of 128 bits.
#[derive(Clone, Copy)]
struct Fnv(u128);

impl Fnv {
    const fn new() -> Self {
        Self(0x6C62_272E_07BB_0142_62B8_2175_6295_C58D)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013B);
        }
    }

    fn text(self) -> String {
        format!("{:032x}", self.0)
    }
}

/// A hash in hexadecimal digits.
pub fn hash(bytes: &[u8]) -> String {
    let mut fnv = Fnv::new();
    fnv.add(bytes);
    fnv.text()
}

/// The hash of this program's bytes: a program built anew is another one.
///
/// # Errors
/// If the program's file cannot be read.
pub fn program() -> Result<String> {
    let program = env::current_exe().context("cannot find the file of this program")?;
    let bytes = fs::read(&program)
        .with_context(|| format!("cannot read {}, this program, to know which runs are its own", program.display()))?;
    Ok(hash(&bytes))
}

/// The hash of a trace's requests and devices, however its file is packed.
pub fn trace(trace: &Trace) -> String {
    let mut fnv = Fnv::new();
    for device in trace.devices() {
        fnv.add(device.as_bytes());
        fnv.add(b"\n");
    }
    fnv.add(&[u8::from(trace.timed())]);
    for record in trace.records() {
        for number in [record.at_ns(), record.offset(), record.bytes(), record.device() as u64] {
            fnv.add(&number.to_le_bytes());
        }
        fnv.add(record.op().name().as_bytes());
        if record.fua() {
            fnv.add(b"fua");
        }
    }
    fnv.text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::trace::{OpenOptions, read};

    #[test]
    fn the_hash_is_that_of_others() {
        // The published offset basis, and FNV-1a of the text `a`.
        assert_eq!(hash(b""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(hash(b"a"), "d228cb696f1a8caf78912b704e4a8964");
    }

    #[test]
    fn traces_differ_with_any_of_their_fields() {
        let of = |line: &str| {
            let text = format!("time_ns,device,op,offset,bytes\n0,a,write,0,512\n{line}\n");
            trace(&read(text.as_bytes(), "t", &OpenOptions::default()).unwrap())
        };
        let usual = of("5,a,read,0,512");
        assert_eq!(usual, of("5,a,read,0,512"));
        for other in ["6,a,read,0,512", "5,b,read,0,512", "5,a,trim,0,512", "5,a,read,512,512", "5,a,read,0,1024"] {
            assert_ne!(usual, of(other), "{other}");
        }
    }
}
