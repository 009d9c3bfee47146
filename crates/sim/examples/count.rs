//! Something to count the instructions of, as scripts/instructions does:
//! `cargo run --release -p openftl-sim --example count CASE WRITES`, or `FTL WRITES MIB`.
//!
//! Runs a case of the benchmark, or `bare` for its bare loop, on a device of 256 MiB. With a size,
//! runs an FTL on a device of so many MiB, as `openftl bench --sizes` does.

use openftl_sim::bench::{Scale, available, bare, spec};
use openftl_sim::{SimError, growth, run};

fn main() -> Result<(), SimError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let (name, number) = (word(0), word(1));
    let Ok(writes) = number.parse() else { refuse(&format!("'{number}' is no number of writes")) };
    if words.len() > 2 {
        let info = ftl::ftls::infos().iter().find(|info| info.name == name);
        let (Some(info), Ok(mebibytes)) = (info, word(2).parse::<u64>()) else {
            refuse(&format!("no FTL '{name}', or '{}' is no number of MiB", word(2)));
        };
        let rate = growth::measure(info, mebibytes << 20, writes, &mut |_| {})?;
        println!("{:.4} programs a write", rate.programs_per_write);
        return Ok(());
    }
    let wanted = if name == "bare" { "page-8g" } else { name };
    let Some(case) = available().into_iter().find(|case| case.name == wanted) else {
        refuse(&format!("no case '{name}'; cases are bare and those of openftl bench"));
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

fn refuse(why: &str) -> ! {
    eprintln!("count CASE WRITES, or count FTL WRITES MIB: {why}");
    std::process::exit(2);
}
