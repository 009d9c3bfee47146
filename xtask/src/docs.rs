//! Documents written by the code they describe.

use crate::tree::{Finding, Tree};
use anyhow::{Context, Result, bail};
use ftl::Setting;
use nand::{ProgramOrder, SimNand};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The document of the FTLs.
const FTLS: &str = "docs/ftls.md";

/// The document that shows what `openftl compare` prints, and the line before the block that does.
const README: &str = "README.md";
const SHOWN: &str = "<!-- openftl compare -->\n```\n";
/// The sections of the output that are shown.
const FROM: &str = "  ftl ";
const TO: &str = "What to try next";

/// Writes every generated document.
pub fn write(root: &Path) -> Result<()> {
    let save = |name: &str, text: String| {
        let path = root.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {name}");
        anyhow::Ok(())
    };
    save(FTLS, ftls())?;
    let readme = fs::read_to_string(root.join(README)).with_context(|| format!("cannot read {README}"))?;
    save(README, with_block(&readme, &shown(&comparison(root)?)?)?)
}

/// What `openftl compare` prints. Not part of `tidy`: a test of the binary compares it with the
/// README.
fn comparison(root: &Path) -> Result<String> {
    let arguments = ["run", "--quiet", "-p", "openftl", "--", "compare"];
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root).output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("openftl compare failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).context("the output is not UTF-8")
}

/// The part of the output that is shown.
fn shown(output: &str) -> Result<String> {
    let from = output.find(FROM).with_context(|| format!("no `{FROM}` in the output"))?;
    let to = output.find(TO).with_context(|| format!("no `{TO}` in the output"))?;
    Ok(output[from..to].trim_end().to_owned())
}

/// The text with the block after [`SHOWN`] replaced.
fn with_block(text: &str, block: &str) -> Result<String> {
    let from = text.find(SHOWN).with_context(|| format!("{README} has no `<!-- openftl compare -->`"))? + SHOWN.len();
    let length = text[from..].find("\n```").with_context(|| format!("{README} does not end its block"))?;
    Ok(format!("{}{block}{}", &text[..from], &text[from + length..]))
}

/// Compares every generated document with what the code says now.
pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    Ok(stale(tree.files.get(FTLS).map(String::as_str), &ftls()).into_iter().collect())
}

fn stale(found: Option<&str>, wanted: &str) -> Option<Finding> {
    let found = found.unwrap_or_default();
    if found == wanted {
        return None;
    }
    let same = found.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count();
    Some(Finding::new(FTLS, same + 1, "not what the table of FTLs says now: run `cargo xtask docs`"))
}

/// The table of FTLs as a document.
fn ftls() -> String {
    let mut out = String::from(
        "# Flash translation layers\n\n\
         Written by `cargo xtask docs` from the table in `crates/ftl/src/ftls/mod.rs`; `openftl list ftls` prints the same.\n\n\
         Settings are what can be chosen of an FTL. `openftl compare` refuses an option that none of its FTLs has a setting for, and says \
         which FTLs ran without; a test changes every setting under every FTL. Most have the name of their option; `wear` is \
         `--level-wear`, `gecko` all that begins with `--gecko-`, `battery` is left out by `openftl crash --no-battery`, and \
         `janus-utilisation` is set by programs only.\n\n\
         | name | what it is | published in | settings | page validity | program order | after power loss |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for entry in ftl::ftls::table::<SimNand>() {
        let info = entry.info;
        let settings: Vec<&str> = Setting::ALL.into_iter().filter(|&s| info.honours(s)).map(Setting::name).collect();
        let preset = info.preset.words();
        let preset = if preset.is_empty() { String::new() } else { format!("; by default {}", preset.join(", ")) };
        let settings = settings.join(", ") + &preset;
        let validity = info.validity.map_or_else(|| "none".to_owned(), |name| format!("`{name}`{}", mountable(&entry)));
        let order = match info.program_order {
            ProgramOrder::Sequential => "any device",
            ProgramOrder::Free => "needs free program order",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {settings} | {validity} | {order} | {} |",
            info.name,
            info.summary,
            info.source,
            info.promise()
        );
    }
    stores(&mut out);
    out
}

/// Over which page-validity stores an FTL can be mounted, in words; asked of its mount, which
/// refuses the others.
fn mountable(entry: &ftl::ftls::Entry<SimNand>) -> String {
    let dimensions = nand::geometry::Dimensions {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks: 128,
        pages_per_block: 32,
        page_bytes: 2048,
        spare_bytes: 64,
    };
    let (Some(mount), Ok(geometry)) = (entry.mount, nand::Geometry::new(dimensions)) else { return String::new() };
    let mounts = |store: &&ftl::validity::Entry| {
        let flash = ftl::Flash::new(SimNand::new(geometry, nand::Capabilities::MODERN));
        let config = ftl::Config { validity: Some(store.name), ..ftl::Config::new(100) };
        !matches!(mount(flash, &config), Err(ftl::FtlError::Unsupported { .. }))
    };
    let names: Vec<&str> = ftl::validity::table().iter().filter(mounts).map(|store| store.name).collect();
    match names.len() {
        1 => "; mounts over no other".to_owned(),
        all if all == ftl::validity::table().len() => "; mounts over any".to_owned(),
        _ => format!("; mounts over {}", names.join(", ")),
    }
}

/// The table of page-validity stores.
fn stores(out: &mut String) {
    out.push_str(
        "\n# Page-validity stores\n\n\
         Written from the table in `crates/ftl/src/validity/mod.rs`; `openftl list stores` prints the same. Any of them works under any \
         FTL that has one (`openftl compare --validity NAME`); where not all of them can be mounted the first table says so.\n\n\
         | name | what it is | published in | settings of its own |\n\
         |---|---|---|---|\n",
    );
    for entry in ftl::validity::table() {
        let settings: Vec<&str> = entry.settings.iter().map(|setting| setting.name()).collect();
        let settings = if settings.is_empty() { "none".to_owned() } else { settings.join(", ") };
        let _ = writeln!(out, "| `{}` | {} | {} | {settings} |", entry.name, entry.summary, entry.source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_document_is_found_at_its_first_different_line() {
        assert_eq!(stale(Some("a\nb\n"), "a\nb\n"), None);
        assert_eq!(stale(Some("a\nx\n"), "a\nb\n").map(|finding| finding.line), Some(2));
        assert_eq!(stale(None, "a\n").map(|finding| finding.line), Some(1));
    }

    #[test]
    fn only_the_block_is_replaced() {
        let text = "before\n<!-- openftl compare -->\n```\nold\nold\n```\nafter\n";
        assert_eq!(with_block(text, "new").unwrap(), text.replace("old\nold", "new"));
        assert!(with_block("nothing", "new").is_err());
        assert_eq!(shown("a\n\n  ftl  x\ny\n\nWhat to try next\nz").unwrap(), "  ftl  x\ny");
    }

    #[test]
    fn every_ftl_has_a_row() {
        let text = ftls();
        for entry in ftl::ftls::table::<SimNand>() {
            assert!(text.contains(&format!("| `{}` |", entry.info.name)));
        }
    }
}
