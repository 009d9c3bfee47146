//! Plain tables: a header, aligned columns, nothing that a terminal has to understand.

use std::fmt::Write as _;

/// Width that every table fits.
pub const WIDTH: usize = 100;

/// How a column is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows under a header.
pub struct Table {
    header: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(header: &[(&str, Align)]) -> Self {
        Self { header: header.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect(), rows: Vec::new() }
    }

    /// Adds a row, one cell a column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.header.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    /// The table as lines. If they would pass [`WIDTH`], a last column of words is wrapped, and
    /// columns of numbers move together.
    pub fn render(&self) -> String {
        let columns = self.header.len();
        let mut widths: Vec<usize> = self.header.iter().map(|(name, _)| name.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let wide = widths.iter().sum::<usize>() + 2 * (columns - 1) > WIDTH;
        let gap = if wide && self.header[columns - 1].1 == Align::Right { " " } else { "  " };
        let before: usize = widths.iter().take(columns - 1).map(|width| width + gap.len()).sum();
        let last = WIDTH.saturating_sub(before).max(20);
        widths[columns - 1] = widths[columns - 1].min(last);

        let mut out = String::new();
        let header: Vec<String> = self.header.iter().map(|(name, _)| name.clone()).collect();
        self.line(&mut out, &header, &widths, gap);
        for row in &self.rows {
            let mut cells = row.clone();
            let lines = wrap(&cells[columns - 1], last);
            for (i, text) in lines.into_iter().enumerate() {
                if i > 0 {
                    cells = vec![String::new(); columns];
                }
                cells[columns - 1] = text;
                self.line(&mut out, &cells, &widths, gap);
            }
        }
        out
    }

    fn line(&self, out: &mut String, cells: &[String], widths: &[usize], gap: &str) {
        let mut line = String::new();
        for (i, ((cell, width), (_, align))) in cells.iter().zip(widths).zip(&self.header).enumerate() {
            if i > 0 {
                line.push_str(gap);
            }
            // Writing to a String cannot fail.
            let _ = match align {
                Align::Left => write!(line, "{cell:<width$}"),
                Align::Right => write!(line, "{cell:>width$}"),
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// Breaks a text at spaces so that no line is longer than `width`, unless a word is.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.len() - 1;
        let used = lines[line].chars().count();
        if used > 0 && used + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
            continue;
        }
        if used > 0 {
            lines[line].push(' ');
        }
        lines[line].push_str(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_long_texts_wrap() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right), ("what", Align::Left)]);
        table.row(vec!["a".into(), "1".into(), "word ".repeat(40)]);
        table.row(vec!["long name".into(), "100".into(), "short".into()]);
        let text = table.render();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "name         n  what");
        assert!(lines[1].starts_with("a            1  word word"));
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert!(lines.len() > 4);
    }
}
