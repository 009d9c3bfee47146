//! Documents written by the code they describe.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The document that shows what `openftl compare` prints, and the line before the block that does.
const README: &str = "README.md";
const SHOWN: &str = "<!-- openftl compare -->\n```\n";
/// The sections of the output that are shown.
const FROM: &str = "  ftl ";
const TO: &str = "What to try next";

/// Writes every generated document.
pub fn write(root: &Path) -> Result<()> {
    // It needs every FTL compiled, as tests have it.
    let arguments = ["test", "--quiet", "-p", "openftl-ftl", "--test", "all", "--", "documents::", "bounds::"];
    let status = Command::new(env!("CARGO")).args(arguments).env("OPENFTL_RENEW", "1").current_dir(root).status();
    if !status.context("cannot run cargo")?.success() {
        bail!("docs/ftls.md and docs/BOUNDS.md could not be written");
    }
    println!("wrote docs/ftls.md, docs/BOUNDS.md");
    let path = root.join(README);
    let readme = fs::read_to_string(&path).with_context(|| format!("cannot read {README}"))?;
    let text = with_block(&readme, &shown(&comparison(root)?)?)?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {README}");
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_block_is_replaced() {
        let text = "before\n<!-- openftl compare -->\n```\nold\nold\n```\nafter\n";
        assert_eq!(with_block(text, "new").unwrap(), text.replace("old\nold", "new"));
        assert!(with_block("nothing", "new").is_err());
        assert_eq!(shown("a\n\n  ftl  x\ny\n\nWhat to try next\nz").unwrap(), "  ftl  x\ny");
    }
}
