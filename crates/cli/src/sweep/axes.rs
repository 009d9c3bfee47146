//! What is varied: lists, ranges and choices as the user writes them, and every combination.

use crate::args::SweepArgs;
use crate::error::{unknown, usage};
use anyhow::Result;
use std::path::Path;

/// More runs than anybody means.
const RUNS_MAX: usize = 100_000;

/// Something that is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The option of `openftl compare`, without its dashes; `trace` is its argument.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

/// A combination: an option with its value from each axis, in the order of the axes.
pub type Cell = Vec<(String, String)>;

/// What stands for many FTLs.
const FAMILIES: [&str; 3] = ["all", "page-mapped", "log-block"];

/// The axes that the options ask for. FTLs and seeds come last: results that belong together stand
/// together.
pub fn axes(args: &SweepArgs) -> Result<Vec<Axis>> {
    let mut axes: Vec<Axis> = Vec::new();
    let mut add = |name: &str, values: Vec<String>| {
        if let Some((at, twice)) = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value)) {
            return Err(usage(format!("{name}: value {} is `{twice}`, which came before", at + 1)));
        }
        if axes.iter().any(|axis| axis.name == name) {
            return Err(usage(format!("--{name} is varied twice; write its values as one list")));
        }
        axes.push(Axis { name: name.to_owned(), values });
        Ok(())
    };
    if let Some(ratios) = &args.logical_ratio {
        add("logical-ratio", list(ratios)?)?;
    }
    for text in &args.vary {
        let Some((name, values)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(usage(format!("--vary {text} names no values; write as in --vary victim=greedy,cost-benefit")));
        };
        let name = name.trim_start_matches('-');
        if ["trace", "workload", "ftl", "seed", "json", "html"].contains(&name) {
            return Err(usage(format!("--vary {name}: that is said by sweep's own --{name} or its argument")));
        }
        add(name, list(values)?)?;
    }
    add("ftl", ftls(&args.ftl)?)?;
    add("seed", list(&args.seed)?)?;
    let count = axes.iter().fold(1_usize, |count, axis| count.saturating_mul(axis.values.len()));
    let loads = loads(args)?.len();
    if count.saturating_mul(loads) > RUNS_MAX {
        return Err(usage(format!("{count} combinations of {loads} workloads are more than {RUNS_MAX} runs")));
    }
    Ok(axes)
}

/// The workloads and traces, each as option and value.
pub fn loads(args: &SweepArgs) -> Result<Vec<(String, String)>> {
    let mut loads = Vec::new();
    for path in &args.traces {
        loads.push(("trace".to_owned(), named(path)?));
    }
    for text in &args.workload {
        let workloads = workloads(text)?;
        loads.extend(workloads.into_iter().map(|spec| ("workload".to_owned(), spec)));
    }
    if loads.is_empty() {
        loads.push(("workload".to_owned(), crate::load::DEFAULT.to_owned()));
    }
    match loads.iter().enumerate().find(|(at, load)| loads[..*at].contains(load)) {
        Some((_, (kind, name))) => Err(usage(format!("the {kind} {name} is named twice"))),
        None => Ok(loads),
    }
}

fn named(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| usage(format!("the name {} is not Unicode, and would be lost in results", path.display())))
}

/// Every combination, the last axis changing first.
pub fn combinations(loads: &[(String, String)], axes: &[Axis]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = loads.iter().map(|load| vec![load.clone()]).collect();
    for axis in axes {
        let longer = |cell: &Cell| -> Vec<Cell> {
            let with = |value: &String| {
                let mut cell = cell.clone();
                cell.push((axis.name.clone(), value.clone()));
                cell
            };
            axis.values.iter().map(with).collect()
        };
        cells = cells.iter().flat_map(longer).collect();
    }
    cells
}

/// The FTLs of a list, in which families stand for their members.
fn ftls(text: &str) -> Result<Vec<String>> {
    let table = ftl::ftls::infos();
    let mut names = Vec::new();
    for item in list(text)? {
        let is_member = |info: &&ftl::ftls::Info| match item.as_str() {
            "all" => true,
            "page-mapped" => info.validity.is_some(),
            "log-block" => info.validity.is_none(),
            name => info.name == name,
        };
        let members: Vec<String> = table.iter().filter(is_member).map(|info| info.name.to_owned()).collect();
        if members.is_empty() {
            return Err(unknown("FTL", &item, table.iter().map(|info| info.name).chain(FAMILIES), "ftls"));
        }
        names.extend(members);
    }
    Ok(names)
}

/// Splits at commas outside braces.
fn split(text: &str) -> Result<Vec<&str>> {
    let (mut depth, mut begin, mut parts) = (0_u32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Err(usage(format!("`{text}` has a `}}` without a `{{`"))),
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err(usage(format!("`{text}` has a `{{` without a `}}`")));
    }
    parts.push(&text[begin..]);
    match parts.iter().any(|part| part.trim().is_empty()) {
        true => Err(usage(format!("`{text}` has an empty value; values are separated by one comma each"))),
        false => Ok(parts),
    }
}

/// A text for each choice in braces.
fn choices(text: &str) -> Result<Vec<String>> {
    let Some(open) = text.find('{') else { return Ok(vec![text.to_owned()]) };
    let mut depth = 0;
    let close = text[open..].char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        (depth == 0).then_some(open + at)
    });
    let Some(close) = close else { return Err(usage(format!("`{text}` has a `{{` without a `}}`"))) };
    let rests = choices(&text[close + 1..])?;
    let mut all = Vec::new();
    for choice in split(&text[open + 1..close])? {
        for middle in choices(choice)? {
            all.extend(rests.iter().map(|rest| format!("{}{middle}{rest}", &text[..open])));
        }
    }
    Ok(all)
}

/// The values of a list, with ranges and choices.
fn list(text: &str) -> Result<Vec<String>> {
    let mut values = Vec::new();
    for part in split(text)? {
        for value in choices(part.trim())? {
            values.extend(range(&value)?);
        }
    }
    Ok(values)
}

/// The specifications of a list: a comma before `key=value` belongs to the one before it.
fn workloads(text: &str) -> Result<Vec<String>> {
    let mut specs: Vec<String> = Vec::new();
    for part in split(text)? {
        let is_option = part.find('=').is_some_and(|equals| part.find(':').is_none_or(|colon| equals < colon));
        match specs.last_mut().filter(|_| is_option) {
            Some(last) => {
                last.push(',');
                last.push_str(part.trim());
            }
            None => specs.push(part.trim().to_owned()),
        }
    }
    let chosen: Result<Vec<Vec<String>>> = specs.iter().map(|spec| choices(spec)).collect();
    Ok(chosen?.concat())
}

/// More steps than anybody means.
const STEPS_MAX: f64 = 10_000.0;

/// The numbers of `low:high:step` or `low..high`; any other text is itself.
fn range(text: &str) -> Result<Vec<String>> {
    if let Some((low, high)) = text.split_once("..")
        && let (Ok(low), Ok(high)) = (low.parse::<u64>(), high.parse::<u64>())
    {
        if low > high || high - low >= STEPS_MAX as u64 {
            return Err(usage(format!("the range {text} goes down, or has more than {STEPS_MAX} numbers")));
        }
        return Ok((low..=high).map(|number| number.to_string()).collect());
    }
    let parts: Vec<&str> = text.split(':').collect();
    let numbers: Vec<f64> = parts.iter().filter_map(|part| part.parse().ok()).collect();
    let (&[_, _, _], &[low, high, step]) = (&parts[..], &numbers[..]) else { return Ok(vec![text.to_owned()]) };
    let steps = ((high - low) / step + 1e-9).floor();
    if !(step > 0.0 && (0.0..STEPS_MAX).contains(&steps)) {
        return Err(usage(format!("the range {text} goes down, or has more than {STEPS_MAX} numbers")));
    }
    let digits = |part: &&str| part.split_once('.').map_or(0, |(_, digits)| digits.len());
    let digits = parts.iter().map(digits).max().unwrap_or(0);
    Ok((0..=steps as u32).map(|at| format!("{:.digits$}", low + f64::from(at) * step)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn lists_have_ranges_and_choices() {
        assert_eq!(list("0.6:0.8:0.05,0.9").unwrap(), words("0.60 0.65 0.70 0.75 0.80 0.9"));
        assert_eq!(list("1..3,8").unwrap(), words("1 2 3 8"));
        assert_eq!(list("{a,b}{1,2}").unwrap(), words("a1 a2 b1 b2"));
        assert_eq!(list("8:4,16KiB").unwrap(), words("8:4 16KiB"));
        for wrong in ["1,,2", "{a", "a}", "3..1", "0.5:0.1:0.1", "1:2:0", ""] {
            assert!(list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_comma_within_a_workload_parts_nothing() {
        let found = workloads("uniform,zipf:theta={0.5,0.99},reads=30,hotcold:space={1,{2,3}}").unwrap();
        let expected = "uniform zipf:theta=0.5,reads=30 zipf:theta=0.99,reads=30 hotcold:space=1 hotcold:space=2 \
                        hotcold:space=3";
        assert_eq!(found, words(expected));
    }

    #[test]
    fn families_are_their_members() {
        let all = ftls("all").unwrap();
        assert_eq!(all.len(), ftl::ftls::infos().len());
        let (page, block) = (ftls("page-mapped").unwrap(), ftls("log-block").unwrap());
        assert_eq!(page.len() + block.len(), all.len());
        assert!(page.contains(&"gecko".to_owned()) && block.contains(&"fast".to_owned()));
        assert!(ftls("geko").unwrap_err().to_string().contains("gecko"));
    }

    #[test]
    fn the_last_axis_changes_first() {
        let axis = |name: &str, values: &str| Axis { name: name.to_owned(), values: words(values) };
        let cells = combinations(&[("workload".into(), "uniform".into())], &[axis("ftl", "a b"), axis("seed", "1 2")]);
        let last: Vec<String> = cells.iter().map(|cell| format!("{}{}", cell[1].1, cell[2].1)).collect();
        assert_eq!(last, words("a1 a2 b1 b2"));
    }
}
