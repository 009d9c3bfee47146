//! Numbers with their units, read and written.

use parse_size::Config;
use std::str::FromStr;

/// A number of bytes as the user gives it: `8GiB`, `4MiB`, `512k`, `65536`. All units are powers of
/// 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = Config::new().with_binary().parse_size(text.trim());
        match parsed {
            Ok(0) => Err("a size is at least 1 byte".to_owned()),
            Ok(bytes) => Ok(Self(bytes)),
            Err(error) => Err(format!("{error}; give a number and a unit, as in 512KiB, 4MiB or 8GiB")),
        }
    }
}

/// Room in a write buffer as the user gives it: `64pages`, or a number of bytes as [`Size`] takes
/// one; `0` is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Bytes(u64),
    Pages(u64),
}

impl Room {
    /// Whether it is none.
    pub fn is_none(self) -> bool {
        matches!(self, Self::Bytes(0) | Self::Pages(0))
    }
}

impl FromStr for Room {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let pages = text.strip_suffix("pages").or_else(|| text.strip_suffix("page"));
        match pages.map(|number| number.trim().parse()) {
            Some(Ok(pages)) => Ok(Self::Pages(pages)),
            Some(Err(_)) => Err("give a whole number of pages, as in 64pages".to_owned()),
            None if text == "0" => Ok(Self::Bytes(0)),
            None => {
                text.parse::<Size>().map(|size| Self::Bytes(size.0)).map_err(|error| format!("{error}, or 64pages"))
            }
        }
    }
}

/// A number of things as the user gives it: `500000`, `500_000`, `500k`, `2M`, `1.5G`. Prefixes are
/// powers of 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain: String = text.trim().chars().filter(|c| *c != '_').collect();
        let (number, factor) = match plain.char_indices().next_back() {
            Some((at, 'k' | 'K')) => (&plain[..at], 1e3),
            Some((at, 'm' | 'M')) => (&plain[..at], 1e6),
            Some((at, 'g' | 'G')) => (&plain[..at], 1e9),
            _ => (plain.as_str(), 1.0),
        };
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        let value = number.parse::<f64>().map(|value| value * factor);
        match value {
            Ok(value) if number.chars().all(digits) && (1.0..1e18).contains(&value) && value.fract() == 0.0 => {
                Ok(Self(value as u64))
            }
            _ => Err("give a whole number of at least 1, as in 500000, 500k or 2M".to_owned()),
        }
    }
}

/// A time in nanoseconds as the user gives it: `200us`, `1.5ms`, `2s`; at most 1000 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub u64);

/// Longer times are those of no device and of no client.
const LONGEST_NS: f64 = 1e12;

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let factor = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return Err("give a number and a unit: ns, us, ms or s, as in 200us or 1.5ms".to_owned()),
        };
        match text[..text.len() - unit.len()].parse::<f64>() {
            Ok(value) if value * factor > LONGEST_NS => Err("a time is at most 1000 s".to_owned()),
            Ok(value) => Ok(Self((value * factor).round() as u64)),
            Err(_) => Err(format!("'{text}' has no number before its unit, as in 200us or 1.5ms")),
        }
    }
}

/// Times of a page that is read and of one that is written, as the user gives them: `147us,85us`,
/// or one for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTimes(pub [u64; 2]);

impl FromStr for PageTimes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (read, write) = text.split_once(',').unwrap_or((text, text));
        Ok(Self([read.parse::<Time>()?.0, write.parse::<Time>()?.0]))
    }
}

/// How logical blocks are grouped, as the user gives it: `8:4`, groups of 8 with at most 4 extra
/// blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    pub blocks: u32,
    pub extra: u32,
}

impl FromStr for Groups {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse().ok().filter(|number| (1..=1 << 20).contains(number));
        text.split_once(':')
            .and_then(|(blocks, extra)| Some(Self { blocks: number(blocks)?, extra: number(extra)? }))
            .ok_or_else(|| "give two whole numbers from 1 to 1048576, as in 8:4".to_owned())
    }
}

/// A share of the paper's device as the user gives it: `1/256`, `0.01` or `full`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = match text.trim() {
            "full" => Some(1.0),
            text => match text.split_once('/') {
                Some((part, whole)) => part.trim().parse::<f64>().ok().zip(whole.trim().parse::<f64>().ok()),
                None => text.parse::<f64>().ok().zip(Some(1.0)),
            }
            .map(|(part, whole)| part / whole),
        };
        match share {
            Some(share) if share > 0.0 && share <= 1.0 => Ok(Self(share)),
            _ => {
                Err("give a share of the paper's device of more than 0 and at most 1, as in 1/256, 0.01 or full".into())
            }
        }
    }
}

/// Bytes with a binary unit and three digits or so.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    let mut value = n as f64;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 99.95);
    let text = format!("{value:.digits$}");
    format!("{} {}", text.trim_end_matches(".0"), UNITS[unit])
}

/// A count with its thousands apart: `1 234 567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A number with up to three decimals, none of them idle.
pub fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A large number with a decimal prefix: `1.25 M`.
pub fn scaled(value: f64) -> String {
    let (divisor, prefix) = match value.abs() {
        v if v >= 1e9 => (1e9, " G"),
        v if v >= 1e6 => (1e6, " M"),
        v if v >= 1e3 => (1e3, " k"),
        _ => (1.0, ""),
    };
    let value = value / divisor;
    let digits = if value.abs() >= 100.0 || (prefix.is_empty() && value.fract() == 0.0) { 0 } else { 2 };
    format!("{value:.digits$}{prefix}")
}

/// Microseconds as µs, ms or s.
pub fn duration_us(us: f64) -> String {
    let (value, unit) = match us {
        us if us >= 1e6 => (us / 1e6, "s"),
        us if us >= 1e3 => (us / 1e3, "ms"),
        us => (us, "µs"),
    };
    let digits = if value >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_powers_of_1024() {
        for (text, wanted) in [("8GiB", 8 << 30), ("4MiB", 4 << 20), ("512k", 512 << 10), ("1 MB", 1 << 20), ("77", 77)]
        {
            assert_eq!(text.parse::<Size>().unwrap().0, wanted, "{text}");
        }
        for text in ["", "GiB", "-4k", "4 lots", "0", "1e300"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn room_is_bytes_or_pages_or_none() {
        let cases = [("64pages", Room::Pages(64)), (" 1 page", Room::Pages(1)), ("256KiB", Room::Bytes(256 << 10))];
        for (text, wanted) in cases {
            assert_eq!(text.parse::<Room>(), Ok(wanted), "{text}");
            assert!(!wanted.is_none());
        }
        assert!(["0", "0pages"].iter().all(|text| text.parse::<Room>().unwrap().is_none()));
        for text in ["", "pages", "-1pages", "1.5pages", "64 sheets", "1KiBpages"] {
            assert!(text.parse::<Room>().unwrap_err().contains("64pages"), "{text}");
        }
    }

    #[test]
    fn counts_are_read_in_powers_of_1000() {
        for (text, wanted) in [("500_000", 500_000), ("500k", 500_000), ("1.5M", 1_500_000), ("7", 7)] {
            assert_eq!(text.parse::<Count>().unwrap().0, wanted, "{text}");
        }
        for text in ["", "0", "k", "-3", "1.5", "1e5", "inf", "2Q"] {
            assert!(text.parse::<Count>().is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_in_nanoseconds() {
        for (text, wanted) in
            [("200us", 200_000), ("1.5ms", 1_500_000), ("0s", 0), ("7ns", 7), ("1000s", 1_000_000_000_000)]
        {
            assert_eq!(text.parse::<Time>().unwrap().0, wanted, "{text}");
        }
        for text in ["", "12", "us", "-3us", "1e3us", "1.2.3s", "5 min", "1001s"] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_read_as_fractions() {
        for (text, wanted) in [("1/256", 1.0 / 256.0), ("0.5", 0.5), ("full", 1.0), ("1", 1.0), ("1 / 4", 0.25)] {
            assert_eq!(text.parse::<Share>().unwrap().0, wanted, "{text}");
        }
        for text in ["", "2", "0", "1/0", "0/0", "-1/4", "half", "1/2/3", "nan"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }

    #[test]
    fn groups_are_two_numbers() {
        assert_eq!("8:4".parse(), Ok(Groups { blocks: 8, extra: 4 }));
        for text in ["", "8", "0:1", "1:0", "8:4:2", "-1:2", "a:b", "1:9999999"] {
            assert!(text.parse::<Groups>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_carry_their_units() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(8 << 30), "8 GiB");
        assert_eq!(bytes((1 << 20) - 1), "1 MiB");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(count(12), "12");
        assert_eq!(scaled(1_250_000.0), "1.25 M");
        assert_eq!(scaled(12.0), "12");
        assert_eq!((trimmed(10.0).as_str(), trimmed(3.25).as_str()), ("10", "3.25"));
        assert_eq!(duration_us(12.34), "12.3 µs");
        assert_eq!(duration_us(1_500.0), "1.5 ms");
    }
}
