//! Long lists of numbers as one line of text: `5 0x3 -7` is 5, 0, 0, 0, -7.

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::Serializer;
use std::fmt::{Display, Write};
use std::str::FromStr;

/// Numbers that a list may have, for the memory that they take.
const MOST: usize = 1 << 26;

pub(super) fn serialize<T: Copy + PartialEq + Display, S: Serializer>(
    list: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut text = String::new();
    for same in list.chunk_by(|a, b| a == b) {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = match same.len() {
            1 => write!(text, "{space}{}", same[0]),
            times => write!(text, "{space}{}x{times}", same[0]),
        };
    }
    serializer.serialize_str(&text)
}

pub(super) fn deserialize<'de, T: Copy + FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let mut list = Vec::new();
    for (place, item) in text.split_ascii_whitespace().enumerate() {
        let wrong = |why: &str| de::Error::custom(format!("item {} of a list, `{item}`, {why}", place + 1));
        let (value, times) = item.split_once('x').unwrap_or((item, "1"));
        let value: T = value.parse().map_err(|_| wrong("is not a number that may stand here"))?;
        let times: usize = times.parse().map_err(|_| wrong("does not say how often"))?;
        if times > MOST - list.len() {
            return Err(wrong("makes the list longer than 67108864 numbers"));
        }
        list.resize(list.len() + times, value);
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Lists {
        #[serde(with = "super")]
        steps: Vec<i64>,
        #[serde(with = "super")]
        counts: Vec<u32>,
    }

    #[test]
    fn lists_come_back() {
        let lists = Lists { steps: vec![5, 0, 0, 0, -7], counts: Vec::new() };
        let text = toml::to_string(&lists).unwrap();
        assert_eq!(text, "steps = \"5 0x3 -7\"\ncounts = \"\"\n");
        assert_eq!(toml::from_str::<Lists>(&text).unwrap(), lists);
    }

    #[test]
    fn what_is_no_list_says_where() {
        for (counts, why) in [
            ("1 two", "item 2 of a list, `two`, is not a number"),
            ("1 -2", "item 2 of a list, `-2`, is not a number"),
            ("1xx", "item 1 of a list, `1xx`, does not say how often"),
            ("0 1x99999999999", "item 2 of a list, `1x99999999999`, makes the list longer"),
        ] {
            let error = toml::from_str::<Lists>(&format!("steps = \"\"\ncounts = \"{counts}\"")).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
