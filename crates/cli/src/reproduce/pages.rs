//! Files of a figure: CSV, an HTML page, and the table of verdicts.

use super::{Made, draw};
use crate::report::html::svg::escape;
use crate::report::html::{bullets, page, section};
use papers::units::short;
use papers::{Cell, DataTable, Figure, Lab, Outcome, Verdict};

/// A number as short as it can be without loss.
fn number(value: f64) -> String {
    if value.is_finite() { format!("{value}") } else { String::new() }
}

/// The table as CSV (RFC 4180).
pub fn csv(table: &DataTable) -> String {
    let quoted = |text: &str| {
        if text.contains(['"', ',', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
    };
    let line = |cells: Vec<String>| cells.join(",") + "\n";
    let mut out = line(table.columns.iter().map(|column| quoted(column)).collect());
    for row in &table.rows {
        let cell = |cell: &Cell| match cell {
            Cell::Text(text) => quoted(text),
            Cell::Number(value) => number(*value),
            Cell::Empty => String::new(),
        };
        out.push_str(&line(row.iter().map(cell).collect()));
    }
    out
}

/// Rows of a table beyond which a page shows every n-th.
const ROWS: usize = 80;

fn table(table: &DataTable) -> String {
    let cell = |cell: &Cell| match cell {
        Cell::Text(text) => escape(text),
        Cell::Number(value) => escape(&short(*value)),
        Cell::Empty => "–".to_owned(),
    };
    let head: String = table.columns.iter().map(|column| format!("<th>{}</th>", escape(column))).collect();
    let step = table.rows.len().div_ceil(ROWS).max(1);
    let rows: String = table
        .rows
        .iter()
        .step_by(step)
        .map(|row| format!("<tr>{}</tr>\n", row.iter().map(|c| format!("<td>{}</td>", cell(c))).collect::<String>()))
        .collect();
    let thinned = if step > 1 { format!(" (every {step}th row; all are in the CSV file)") } else { String::new() };
    format!(
        "<h3>{}{thinned}</h3>\n<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\
         </table></div>\n",
        escape(&table.title)
    )
}

fn verdicts(list: &[Verdict]) -> String {
    let rows: String = list
        .iter()
        .map(|verdict| {
            let words = |text: &str| format!("<td class=\"words\">{}</td>", escape(text));
            let why = verdict.why.as_ref().map_or_else(String::new, |why| format!(". Why not: {why}"));
            format!(
                "<tr>{}{}{}{}<td class=\"words\"><strong>{}</strong>: {}</td></tr>\n",
                words(&verdict.claim),
                words(&verdict.paper),
                words(&verdict.ours),
                words(verdict.formula.as_deref().unwrap_or("–")),
                verdict.word(),
                escape(&format!("{}{why}", verdict.margin)),
            )
        })
        .collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr><th>claim</th><th>paper</th><th>here</th><th>formula</th>\
         <th>verdict, by how much</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// The page of a figure.
pub fn html(figure: &Figure, outcome: &Outcome, lab: &Lab) -> String {
    let mut body = format!(
        "<h1>{}: {}</h1>\n<p class=\"about\">{}. Made with <code>openftl reproduce {} --scale {} --seed {}</code>.</p>\n",
        escape(figure.name),
        escape(figure.title),
        escape(figure.source),
        escape(figure.name),
        scale(lab),
        lab.seed,
    );
    body.push_str(&section("Claims", "", &verdicts(&outcome.verdicts)));
    for chart in &outcome.charts {
        body.push_str(&section(draw::title(chart), "", &draw::figure(chart)));
    }
    body.push_str(&section("How it was made", "", &bullets(&[&outcome.setup[..], &outcome.remarks[..]].concat())));
    body.push_str(&section("Data", "", &outcome.tables.iter().map(table).collect::<String>()));
    page(&format!("{}: {}", figure.name, figure.title), &body, "The same as CSV and SVG lies beside this page.")
}

/// The scale as it is typed.
fn scale(lab: &Lab) -> String {
    let parts = 1.0 / lab.scale;
    if (parts - 1.0).abs() < 1e-12 {
        "full".to_owned()
    } else if (parts - parts.round()).abs() < 1e-9 {
        format!("1/{}", parts.round())
    } else {
        number(lab.scale)
    }
}

/// All verdicts as Markdown.
pub fn markdown(made: &[Made], lab: &Lab) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut out = format!(
        "Scale {}, seed {}.\n\n| figure | claim | paper | here | formula | verdict | margin |\n|---|---|---|---|---|---|---|\n",
        scale(lab),
        lab.seed
    );
    for made in made {
        for verdict in &made.outcome.verdicts {
            let why = verdict.why.as_ref().map_or_else(String::new, |why| format!(". Why not: {why}"));
            let cells = [
                made.figure.name,
                &verdict.claim,
                &verdict.paper,
                &verdict.ours,
                verdict.formula.as_deref().unwrap_or("–"),
                verdict.word(),
                &format!("{}{why}", verdict.margin),
            ];
            out.push_str(&format!("| {} |\n", cells.map(cell).join(" | ")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_quotes_what_needs_it() {
        let mut table = DataTable::new("", "t", &["name, unit", "n"]);
        table.row(vec!["say \"x\"".into(), 0.1.into()]);
        table.row(vec![Cell::Empty, f64::NAN.into()]);
        assert_eq!(csv(&table), "\"name, unit\",n\n\"say \"\"x\"\"\",0.1\n,\n");
    }

    #[test]
    fn scales_are_written_as_they_are_typed() {
        let at = |value: f64| scale(&Lab { scale: value, ..Lab::default() });
        assert_eq!((at(1.0).as_str(), at(1.0 / 256.0).as_str(), at(0.3).as_str()), ("full", "1/256", "0.3"));
    }
}
