//! Something to count the instructions of, as scripts/instructions does:
//! `cargo run --release -p openftl-sim --example count CASE WRITES`.
//!
//! Runs a case of the benchmark, or `bare` for its bare loop, on a device of 256 MiB.

use openftl_sim::bench::{Scale, available, bare, spec};
use openftl_sim::{SimError, run};

fn main() -> Result<(), SimError> {
    let mut words = std::env::args().skip(1);
    let (name, writes) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let wanted = if name == "bare" { "page-8g" } else { &name };
    let case = available().into_iter().find(|case| case.name == wanted);
    let (Some(case), Ok(writes)) = (case, writes.parse()) else {
        eprintln!(
            "count CASE WRITES: no case '{name}' or no number '{writes}'; cases are bare and those of openftl bench"
        );
        std::process::exit(2);
    };
    let spec = spec(&case, Scale::Of { capacity_bytes: 256 << 20, writes })?;
    if name == "bare" {
        println!("{:.4} programs a write", bare(&spec).programs_per_write);
    } else {
        let result = run(&spec, &mut |_| {})?;
        println!("{:.4} programs a write, {:016x}", result.write_amplification.programs_per_write, result.digest());
    }
    Ok(())
}
