//! `openftl bench`: how fast the simulator is, against its targets.

use crate::args::BenchArgs;
use crate::error::usage;
use crate::growth;
use crate::output;
use crate::report::table::{Align, Table};
use crate::units::scaled;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use sim::bench::{self, Case, Device, Measured, Scale};

/// Measures every case, or those that are named.
pub fn run(args: &BenchArgs) -> Result<()> {
    if !args.sizes.is_empty() {
        return growth::run(args);
    }
    let scale = if args.quick { Scale::Tiny } else { Scale::Full };
    let mut measured = Vec::new();
    for case in cases(&args.case)? {
        if !args.json {
            output::complain(&format!("running {} ...", case.name));
        }
        measured.push(bench::measure(&case, scale, &mut |_| {})?);
    }
    if args.json {
        let cases: Vec<Value> = measured.iter().map(as_json).collect();
        let document = json!({"openftl": env!("CARGO_PKG_VERSION"), "quick": args.quick, "cases": cases});
        let mut text = serde_json::to_string_pretty(&document).context("the rates are not JSON")?;
        text.push('\n');
        return output::print(&text);
    }
    output::print(&as_text(&measured, args.quick))
}

/// The cases of these names, in the order of reports; all if none is named.
fn cases(names: &[String]) -> Result<Vec<Case>> {
    let available = bench::available();
    for name in names {
        if available.iter().all(|case| case.name != name) {
            let known = available.iter().map(|case| case.name).collect::<Vec<_>>().join(", ");
            return Err(usage(format!("--case names '{name}', which is none of the cases: {known}")));
        }
    }
    let wanted = |case: &Case| names.is_empty() || names.iter().any(|name| name == case.name);
    Ok(available.into_iter().filter(wanted).collect())
}

fn as_json(m: &Measured) -> Value {
    json!({
        "name": m.case.name,
        "ftl": m.case.ftl,
        "capacity_bytes": m.case.gibibytes << 30,
        "timed": m.case.device == Device::Timed,
        "workload": m.case.workload,
        "host_writes_per_s": m.host_writes_per_s,
        "goal_writes_per_s": m.case.goal_writes_per_s,
        "of_goal": m.of_goal,
        "bare_writes_per_s": m.bare.writes_per_s,
        "bare_programs_per_write": m.bare.programs_per_write,
        "of_bare": m.of_bare,
        "programs_per_write": m.programs_per_write,
        "bytes_per_page": m.bytes_per_page,
        "digest": format!("{:016x}", m.digest),
    })
}

fn as_text(measured: &[Measured], quick: bool) -> String {
    let mut table = Table::new(&[
        ("case", Align::Left),
        ("writes/s", Align::Right),
        ("target", Align::Right),
        ("of target", Align::Right),
        ("of bare loop", Align::Right),
        ("programs/write", Align::Right),
        ("B of memory/page", Align::Right),
        ("digest of result", Align::Left),
    ]);
    for m in measured {
        table.row(vec![
            m.case.name.to_owned(),
            scaled(m.host_writes_per_s),
            scaled(m.case.goal_writes_per_s),
            format!("{:.2}x", m.of_goal),
            format!("{:.1}%", 100.0 * m.of_bare),
            format!("{:.3}", m.programs_per_write),
            format!("{:.1}", m.bytes_per_page),
            format!("{:016x}", m.digest),
        ]);
    }
    let what = if quick {
        "\nQuick: small devices and short runs. Rates and memory say nothing; equal digests say the results are equal.\n"
    } else {
        "\nHost page writes per second of a core of this computer, every read checked. Uniform random writes at 70% full; of FAST and\n\
         Janus-FTL at 90%, on the device of Janus-FTL's paper, and Zipf as well. The bare loop maps pages and collects greedily\n\
         in a few arrays, without device, spare areas and checks. It runs before each case, uniformly, on a device of that shape.\n"
    };
    table.render() + what
}
