//! Measures the simulator: `cargo run --release -p openftl-sim --example bench [name]`.

use openftl_sim::SimError;
use openftl_sim::bench::{Scale, available, measure};

fn main() -> Result<(), SimError> {
    let wanted = std::env::args().nth(1);
    for case in available().into_iter().filter(|case| wanted.as_deref().is_none_or(|name| name == case.name)) {
        let m = measure(&case, Scale::Full, &mut |_| {})?;
        println!(
            "{:<16} {:>8.3} M host writes/s ({:>3.0}% of the goal), {:.4} programs a write, {:.1} B a page, {:016x}",
            case.name,
            m.host_writes_per_s / 1e6,
            m.of_goal * 100.0,
            m.programs_per_write,
            m.bytes_per_page,
            m.digest
        );
    }
    Ok(())
}
