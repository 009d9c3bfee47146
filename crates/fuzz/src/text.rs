//! What a user types: workloads, profiles, ids of replays.

use workload::{Profile, Request, Source, Spec};

/// Bytes of the space that workloads are built for.
const SPACE: u64 = 1 << 26;

pub(crate) fn run(bytes: &[u8]) -> Result<(), String> {
    let Some((which, rest)) = bytes.split_first() else { return Ok(()) };
    let text = String::from_utf8_lossy(rest);
    match which % 4 {
        0 => spec(&text),
        1 => profile(&text),
        2 => crash::check_id(&text),
        _ => crash::check_id(&crash::make_id("page", rest)),
    }
}

/// A workload is the same after it was printed and parsed again, and stays within its space.
fn spec(text: &str) -> Result<(), String> {
    let Ok(spec) = text.parse::<Spec>() else { return Ok(()) };
    let printed = spec.to_string();
    match printed.parse::<Spec>() {
        Ok(again) if again == spec => {}
        Ok(again) => return Err(format!("`{text}` is printed as `{printed}`, which is `{again}`")),
        Err(error) => return Err(format!("`{text}` is printed as `{printed}`: {error}")),
    }
    if spec.entry().name == "profile" {
        // Building it would read a file.
        return Ok(());
    }
    match spec.build(SPACE, 4096, 1) {
        Ok(source) => draw(source),
        Err(_) => Ok(()),
    }
}

fn profile(text: &str) -> Result<(), String> {
    let Ok(profile) = Profile::parse("sample", text) else { return Ok(()) };
    let written = profile.to_toml().map_err(|error| error.to_string())?;
    match Profile::parse("sample", &written) {
        Ok(again) if again == profile => Ok(()),
        Ok(_) => Err(format!("a profile is written as another:\n{written}")),
        Err(error) => Err(format!("a profile is written as none: {error}")),
    }
}

fn draw(mut source: impl Source) -> Result<(), String> {
    let mut batch = [Request::default(); 128];
    let filled = source.fill(&mut batch).map_err(|error| error.to_string())?;
    match batch[..filled].iter().find(|r| r.offset.checked_add(r.bytes).is_none_or(|end| end > SPACE)) {
        Some(beyond) => Err(format!("`{}` asks for what lies beyond the space: {beyond:?}", source.describe())),
        None => Ok(()),
    }
}
