//! `openftl bench --sizes`: what a write takes of the computer's time on devices of several sizes.

use crate::args::BenchArgs;
use crate::compare::ftls;
use crate::device::{MEMORY_A_PAGE, check_memory};
use crate::output;
use crate::report::table::{Align, Table};
use crate::units::{bytes, scaled};
use anyhow::{Context, Result};
use ftl::ftls::Info;
use serde_json::{Value, json};
use sim::growth::{self, Rate};

/// Measures each FTL on each size, one after the other.
pub fn run(args: &BenchArgs) -> Result<()> {
    let infos = if args.ftl.is_empty() { ftl::ftls::infos().to_vec() } else { ftls(&args.ftl)? };
    let largest = args.sizes.iter().map(|size| size.0).max().unwrap_or_default();
    check_memory(largest / growth::PAGE_BYTES * MEMORY_A_PAGE)?;
    let mut measured = Vec::new();
    for info in infos {
        let mut rates = Vec::new();
        for size in &args.sizes {
            if !args.json {
                output::complain(&format!("running {} on {} ...", info.name, bytes(size.0)));
            }
            rates.push(growth::measure(&info, size.0, args.writes.0, &mut |_| {})?);
        }
        measured.push((info, rates));
    }
    if args.json {
        let ftls: Vec<Value> = measured.iter().map(as_json).collect();
        let document = json!({"openftl": env!("CARGO_PKG_VERSION"), "writes": args.writes.0, "ftls": ftls});
        let mut text = serde_json::to_string_pretty(&document).context("the rates are not JSON")?;
        text.push('\n');
        return output::print(&text);
    }
    output::print(&as_text(args, &measured))
}

fn as_json((info, rates): &(Info, Vec<Rate>)) -> Value {
    let rate = |rate: &Rate| {
        json!({
            "capacity_bytes": rate.capacity_bytes,
            "host_writes_per_s": rate.host_writes_per_s,
            "programs_per_write": rate.programs_per_write,
        })
    };
    let rates_as_json: Vec<Value> = rates.iter().map(rate).collect();
    json!({"name": info.name, "rates": rates_as_json, "fastest_over_slowest": growth::spread(rates)})
}

fn as_text(args: &BenchArgs, measured: &[(Info, Vec<Rate>)]) -> String {
    let sizes: Vec<String> = args.sizes.iter().map(|size| bytes(size.0)).collect();
    let mut columns = vec![("FTL", Align::Left)];
    columns.extend(sizes.iter().map(|size| (size.as_str(), Align::Right)));
    columns.push(("fastest/slowest", Align::Right));
    let mut table = Table::new(&columns);
    for (info, rates) in measured {
        let mut row = vec![info.name.to_owned()];
        row.extend(rates.iter().map(|rate| scaled(rate.host_writes_per_s)));
        row.push(format!("{:.2}x", growth::spread(rates)));
        table.row(row);
    }
    table.render()
        + "\nHost page writes per second of a core of this computer, every read checked. Uniform random writes to devices of these\n\
           raw capacities: 70% full for FTLs that are mapped by page, 90% for others, once they collect.\n"
}
