//! Numbers as readers of figures see them.

/// A number with four significant digits.
#[must_use]
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return "nothing".to_owned();
    }
    let digits = if value == 0.0 { 0 } else { (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A scale as it is written on the command line.
pub fn share(scale: f64) -> String {
    let parts = 1.0 / scale;
    if (parts - parts.round()).abs() < 1e-9 { format!("1/{}", parts.round()) } else { format!("{scale}") }
}

/// Bytes as GiB, or MiB if that is less than one.
pub fn gib(bytes: f64) -> String {
    let (value, unit) = match bytes {
        b if b >= 1024.0_f64.powi(4) => (b / 1024.0_f64.powi(4), "TiB"),
        b if b >= 1024.0_f64.powi(3) => (b / 1024.0_f64.powi(3), "GiB"),
        b => (b / 1024.0_f64.powi(2), "MiB"),
    };
    format!("{} {unit}", short(value))
}

/// MiB of these bytes.
pub fn mib(bytes: f64) -> f64 {
    bytes / (1024.0 * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [(0.016_58, "0.01658"), (1.1, "1.1"), (98.443, "98.44"), (123_456.0, "123456"), (0.0, "0")];
        for (value, wanted) in cases {
            assert_eq!(short(value), wanted);
        }
    }
}
