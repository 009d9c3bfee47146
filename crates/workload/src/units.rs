//! Sizes with units, read and written.

/// Reads `4096`, `4KiB`, `64k`, `1.5M`, `10KB`, `2GiB`. Like fio and qemu, `k`/`M`/`G` and
/// `KB`/`MB`/`GB` are powers of 1024 here: a device has no decimal pages.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => {
            return Err(format!("`{unit}` is not a unit; use B, KiB, MiB, GiB or TiB"));
        }
    };
    if let Ok(whole) = number.parse::<u64>() {
        let bytes = u128::from(whole) << shift;
        return u64::try_from(bytes).map_err(|_| "more than 16 EiB".to_owned());
    }
    let value: f64 = number.parse().map_err(|_| "a size is a number and a unit, as 4KiB".to_owned())?;
    let bytes = value * (1u64 << shift) as f64;
    if bytes.fract() != 0.0 || bytes >= u64::MAX as f64 {
        return Err("not a whole number of bytes".to_owned());
    }
    Ok(bytes as u64)
}

/// Writes a size in the largest binary unit that divides it.
pub(crate) fn format_bytes(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes != 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_written() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4KiB", 4096),
            ("4k", 4096),
            ("4KB", 4096),
            ("1.5M", 3 << 19),
            ("512B", 512),
            ("2GiB", 2 << 30),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
            assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        }
        for text in ["", "KiB", "4 parsecs", "-1", "0.3B", "99999999999T", "1..5k", "1e9"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
