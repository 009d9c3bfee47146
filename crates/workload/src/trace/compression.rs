//! Compressed files, known by their first bytes.

use std::io::{BufRead, Read};

/// A compression and the bytes it starts with.
const MAGICS: &[(&str, &[u8])] = &[
    ("gzip", &[0x1f, 0x8b]),
    ("zstd", &[0x28, 0xb5, 0x2f, 0xfd]),
    ("xz", &[0xfd, b'7', b'z', b'X', b'Z', 0]),
    ("bzip2", b"BZh"),
];

/// Memory for what a file says that its dictionary needs: twice that of `xz -9`, as `ruzstd` does
/// with twice zstd's.
const XZ_KIB_MAX: u32 = 129 << 10;

/// Name of the compression a file starting with `head` has, "none" if none.
pub(super) fn name(head: &[u8]) -> &'static str {
    MAGICS.iter().find(|(_, magic)| head.starts_with(magic)).map_or("none", |(name, _)| name)
}

/// Unpacks `inner`, several members or streams after each other included.
pub(super) fn unpack<'a>(mut inner: impl BufRead + 'a) -> std::io::Result<(&'static str, Box<dyn Read + 'a>)> {
    let name = name(inner.fill_buf()?);
    let reader: Box<dyn Read + 'a> = match name {
        "gzip" => Box::new(flate2::bufread::MultiGzDecoder::new(inner)),
        "bzip2" => Box::new(bzip2::bufread::MultiBzDecoder::new(inner)),
        "xz" => Box::new(lzma_rust2::XzReader::new_mem_limit(inner, true, XZ_KIB_MAX)),
        "zstd" => Box::new(Zstd { inner, decoder: None }),
        _ => Box::new(inner),
    };
    Ok((name, reader))
}

/// `ruzstd` decodes one frame; files of `pzstd` and appended files hold several.
struct Zstd<R: BufRead> {
    inner: R,
    decoder: Option<Box<ruzstd::decoding::FrameDecoder>>,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        use ruzstd::decoding::BlockDecodingStrategy;
        let wrong = |e: ruzstd::decoding::errors::FrameDecoderError| {
            std::io::Error::new(std::io::ErrorKind::InvalidData, e.to_string())
        };
        while !out.is_empty() {
            let Some(decoder) = &mut self.decoder else {
                if self.inner.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                let mut decoder = Box::new(ruzstd::decoding::FrameDecoder::new());
                decoder.init(&mut self.inner).map_err(wrong)?;
                self.decoder = Some(decoder);
                continue;
            };
            if decoder.can_collect() == 0 && !decoder.is_finished() {
                decoder.decode_blocks(&mut self.inner, BlockDecodingStrategy::UptoBytes(1 << 16)).map_err(wrong)?;
            }
            let got = decoder.read(out)?;
            if got > 0 {
                return Ok(got);
            }
            if decoder.is_finished() {
                self.decoder = None;
            }
        }
        Ok(0)
    }
}
