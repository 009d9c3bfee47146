//! Lines and records with the place they came from.

use crate::error::WorkloadError;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::PathBuf;

/// No line of a trace is longer; a file without line ends must not fill the memory.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// An uncompressed trace being read.
pub(super) struct Input<'a> {
    reader: BufReader<Box<dyn Read + 'a>>,
    head: Vec<u8>,
    head_read: usize,
    pub(super) file: String,
    line: u64,
    byte: u64,
    text: Vec<u8>,
}

impl<'a> Input<'a> {
    /// Reads ahead `head_bytes` for detection; they are read again afterwards.
    pub(super) fn new(reader: Box<dyn Read + 'a>, file: &str, head_bytes: u64) -> Result<Self, WorkloadError> {
        let mut reader = BufReader::with_capacity(1 << 16, reader);
        let mut head = Vec::new();
        reader.by_ref().take(head_bytes).read_to_end(&mut head).map_err(|e| io(file, e))?;
        Ok(Input { reader, head, head_read: 0, file: file.to_owned(), line: 0, byte: 0, text: Vec::new() })
    }

    /// The first bytes of the file.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The next line without its end, and its number; `None` at the end of the file.
    pub(super) fn line(&mut self) -> Result<Option<(u64, String)>, WorkloadError> {
        self.text.clear();
        let mut ahead = &self.head[self.head_read..];
        if !ahead.is_empty() {
            let got = ahead.read_until(b'\n', &mut self.text).map_err(|e| io(&self.file, e))?;
            self.head_read += got;
        }
        if self.text.last() != Some(&b'\n') {
            let mut bounded = self.reader.by_ref().take(LINE_BYTES_MAX);
            bounded.read_until(b'\n', &mut self.text).map_err(|e| io(&self.file, e))?;
        }
        if self.text.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        let text = String::from_utf8_lossy(&self.text);
        Ok(Some((self.line, text.trim_end_matches(['\n', '\r']).to_owned())))
    }

    /// Fills `record` and returns its byte offset; `None` at the end of the file.
    ///
    /// # Errors
    /// If the file ends in the middle of a record.
    pub(super) fn record(&mut self, record: &mut [u8], format: &'static str) -> Result<Option<u64>, WorkloadError> {
        let at = self.byte;
        let mut got = 0;
        while got < record.len() {
            let ahead = &self.head[self.head_read..];
            let n = if ahead.is_empty() {
                self.reader.read(&mut record[got..]).map_err(|e| io(&self.file, e))?
            } else {
                let n = ahead.len().min(record.len() - got);
                record[got..got + n].copy_from_slice(&ahead[..n]);
                self.head_read += n;
                n
            };
            if n == 0 {
                break;
            }
            got += n;
        }
        self.byte += got as u64;
        match got {
            0 => Ok(None),
            _ if got == record.len() => Ok(Some(at)),
            _ => {
                let why = format!("the file ends after {got} of {} bytes", record.len());
                Err(WorkloadError::Record { file: self.file.clone(), offset: at, format, why })
            }
        }
    }
}

pub(super) fn io(file: &str, mut source: std::io::Error) -> WorkloadError {
    if source.kind() == ErrorKind::UnexpectedEof {
        source = std::io::Error::new(source.kind(), "its compressed contents are cut short; copy the whole file again");
    }
    WorkloadError::Io { action: "read or unpack", path: PathBuf::from(file), source }
}
