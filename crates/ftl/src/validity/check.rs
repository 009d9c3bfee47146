//! Check values of pages whose history is not known: a page torn by power loss can read well.

/// The check value of some bytes; `start` tells structures and their format versions apart.
///
/// The bytes are taken as 64-bit words, the last one filled up with zeros. Beginning with `start`
/// plus the number of bytes, each word w makes h = (h xor w) × 0x9E3779B97F4A7C15 modulo 2^64, then
/// h = h xor (h >> 32). The low 32 bits are kept.
pub(in crate::validity) fn check_value(start: u64, bytes: &[u8]) -> u32 {
    let mut hash = start.wrapping_add(bytes.len() as u64);
    let mut mix = |word: u64| {
        hash = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^= hash >> 32;
    };
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        mix(u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        mix(u64::from_le_bytes(word));
    }
    hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are part of flash formats.
    #[test]
    fn the_check_value_is_that_of_the_formats() {
        let bytes: [u8; 16] = core::array::from_fn(|at| at as u8);
        let values = [(0, 0), (7, 16), (7, 11), (8, 11)].map(|(start, count)| check_value(start, &bytes[..count]));
        assert_eq!(values, [0, 0x78CC_DAE6, 0xD7EE_0216, 0x0868_F3B0]);
        assert_ne!(check_value(7, &[1]), check_value(7, &[1, 0]), "the length counts");
    }
}
