//! `openftl bench`: how fast the simulator is, against its targets.

use crate::args::BenchArgs;
use crate::output;
use crate::report::table::{Align, Table};
use crate::units::scaled;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use sim::bench::{self, Device, Measured, Scale};

/// Measures every case.
pub fn run(args: &BenchArgs) -> Result<()> {
    let scale = if args.quick { Scale::Tiny } else { Scale::Full };
    let mut measured = Vec::new();
    for case in bench::available() {
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
            format!("{:.3}", m.programs_per_write),
            format!("{:.1}", m.bytes_per_page),
            format!("{:016x}", m.digest),
        ]);
    }
    let what = if quick {
        "\nQuick: small devices and short runs. Rates and memory say nothing; equal digests say the results are equal.\n"
    } else {
        "\nHost page writes per second of this computer, one core, every read checked. Uniform random writes at 70% full; of FAST and\n\
         Janus-FTL at 90%, on the device of Janus-FTL's paper, and Zipf as well.\n"
    };
    table.render() + what
}
