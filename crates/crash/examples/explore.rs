//! Explores one FTL and prints the report: `explore page exhaustive 100000 1 7` (FTL or `all`, mode, cuts, depth, seed,
//! and `no-battery` if FTLs that need one are to have none), or replays an id: `explore page-0103…`.

use openftl_crash::{Mode, Options, replay, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |at: usize, default: &'static str| args.get(at).map_or(default, String::as_str);
    if args.len() == 1 && arg(0, "").contains('-') {
        println!("{:#?}", replay(arg(0, ""))?);
        return Ok(());
    }
    let options = Options {
        ftls: args.first().filter(|name| *name != "all").into_iter().cloned().collect(),
        mode: Mode::find(arg(1, "exhaustive")).ok_or("a mode is log, linear, exhaustive or random")?,
        cuts: arg(2, "100000").parse()?,
        depth: arg(3, "1").parse()?,
        seed: arg(4, "1").parse()?,
        battery: arg(5, "battery") != "no-battery",
        ..Options::default()
    };
    let report = run(&options, &mut |_| {})?;
    for ftl in &report.ftls {
        println!("{ftl:#?}");
    }
    Ok(())
}
