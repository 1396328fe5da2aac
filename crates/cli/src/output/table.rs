//! Tables that keep to the width of a terminal.
//!
//! A table that is too wide leaves out the columns that say nothing in any row, then breaks long texts at blanks. If
//! that is not enough, its last column, which is where long ids stand, goes below the others:
//!
//! ```text
//!  STATUS   CREATED              TRIES  KEY
//!    ID
//!  FAILED   2026-01-31 12:00:00  1      record:1
//!    index_record.published_04b6f200-0000-8000-8000-00000000000f
//! ```
//!
//! On a terminal that is narrower still each row becomes a block, a line a column. A word is broken only where it is
//! wider than its whole line.

use super::paint::Paint;
use super::text::{clean_cell, fold, fold_hard, pad, width, words};

/// Between two columns, and before what stands below them.
const GAP: usize = 2;
/// No column is made narrower than this: the first while there is another way, the second before rows become blocks.
const NARROW: [usize; 2] = [20, 10];
/// The least that a block leaves for its values, however narrow the terminal is.
const LEAST: usize = 8;

/// The lines of a table. A pipe has no width: there each row is one line.
pub(super) fn lines(head: &[&str], rows: Vec<Vec<String>>, most: Option<usize>, paint: Paint) -> Vec<String> {
    let mut columns = columns(head, rows);
    let natural = widths(&columns);
    let Some(most) = most.filter(|most| total(&natural) > *most) else {
        return side_by_side(&columns, &natural, paint);
    };
    leave_out_the_silent(&mut columns);
    for narrow in NARROW {
        if let Some(widths) = shrunk(&columns, most, narrow) {
            return side_by_side(&columns, &widths, paint);
        }
        if let Some((below, beside)) = columns.split_last()
            && !beside.is_empty()
            && let Some(widths) = shrunk(beside, most, narrow)
        {
            return one_below(beside, &widths, below, most, paint);
        }
    }
    blocks(&columns, most, paint)
}

struct Column {
    title: String,
    cells: Vec<String>,
}

fn columns(head: &[&str], rows: Vec<Vec<String>>) -> Vec<Column> {
    let column = |title: &&str| Column { title: title.to_uppercase(), cells: vec![] };
    let mut columns: Vec<Column> = head.iter().map(column).collect();
    for row in rows {
        for (column, cell) in columns.iter_mut().zip(row) {
            column.cells.push(clean_cell(&cell).into_owned());
        }
    }
    columns
}

impl Column {
    fn width(&self) -> usize {
        self.cells.iter().chain([&self.title]).map(|text| width(text)).max().unwrap_or(0)
    }

    /// The least width at which no word and no title is broken.
    fn least(&self, narrow: usize) -> usize {
        let words = self.cells.iter().flat_map(|cell| words(cell)).map(width);
        words.chain([width(&self.title), narrow]).max().unwrap_or(narrow)
    }

    fn says_something(&self) -> bool {
        self.cells.iter().any(|cell| !matches!(cell.as_str(), "" | "-" | "0" | "no"))
    }

    /// The text of a row in the colour that it has everywhere, if it has one.
    fn painted(&self, text: &str, paint: Paint) -> String {
        if self.title == "STATUS" { paint.status(text, text).into_owned() } else { text.into() }
    }
}

fn widths(columns: &[Column]) -> Vec<usize> {
    columns.iter().map(Column::width).collect()
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// The first column stays: it names the rows.
fn leave_out_the_silent(columns: &mut Vec<Column>) {
    let mut first = true;
    columns.retain(|column| std::mem::take(&mut first) || column.says_something());
}

/// The widths at which a table is no wider than that; none if words would have to be broken.
fn shrunk(columns: &[Column], most: usize, narrow: usize) -> Option<Vec<usize>> {
    let least: Vec<usize> = columns.iter().map(|column| column.least(narrow)).collect();
    let mut widths = widths(columns);
    while total(&widths) > most {
        // The widest gives way first, so that all end about as wide.
        let at = (0..widths.len()).filter(|&at| widths[at] > least[at]).max_by_key(|&at| widths[at])?;
        widths[at] -= 1;
    }
    Some(widths)
}

fn rows(columns: &[Column]) -> std::ops::Range<usize> {
    0..columns.first().map_or(0, |column| column.cells.len())
}

fn side_by_side(columns: &[Column], widths: &[usize], paint: Paint) -> Vec<String> {
    let mut lines = vec![head(columns, widths, paint)];
    lines.extend(rows(columns).flat_map(|row| row_lines(columns, widths, row, paint)));
    lines
}

fn one_below(columns: &[Column], widths: &[usize], below: &Column, most: usize, paint: Paint) -> Vec<String> {
    let under = |text: &str| format!("{:GAP$}{text}", "");
    let mut lines = vec![head(columns, widths, paint), paint.dim(&under(&below.title)).into_owned()];
    for row in rows(columns) {
        lines.extend(row_lines(columns, widths, row, paint));
        let text = Some(&below.cells[row]).filter(|text| !text.is_empty());
        lines.extend(
            text.iter().flat_map(|text| fold_hard(text, most.saturating_sub(GAP))).map(|text| under(&text)),
        );
    }
    lines
}

fn head(columns: &[Column], widths: &[usize], paint: Paint) -> String {
    let titles = columns.iter().zip(widths).map(|(column, width)| pad(&column.title, *width));
    paint.dim(joined(titles).trim_end()).into_owned()
}

/// The cells of a row, each in as many lines as it takes.
fn row_lines(columns: &[Column], widths: &[usize], row: usize, paint: Paint) -> Vec<String> {
    let cells: Vec<Vec<String>> =
        columns.iter().zip(widths).map(|(column, width)| fold(&column.cells[row], *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |at: usize| {
        let parts = columns.iter().zip(widths).zip(&cells).map(|((column, width), lines)| {
            pad(&column.painted(lines.get(at).map_or("", String::as_str), paint), *width)
        });
        joined(parts).trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(&" ".repeat(GAP))
}

/// A block for each row, a line or more for each column that says something there.
fn blocks(columns: &[Column], most: usize, paint: Paint) -> Vec<String> {
    let titles = columns.iter().map(|column| width(&column.title)).max().unwrap_or(0);
    let room = most.saturating_sub(titles + GAP).max(LEAST);
    let mut lines = vec![];
    for row in rows(columns) {
        if row > 0 {
            lines.push(String::new());
        }
        for column in columns.iter().filter(|column| !matches!(column.cells[row].as_str(), "" | "-")) {
            for (at, text) in fold_hard(&column.cells[row], room).iter().enumerate() {
                let title = pad(if at == 0 { &column.title } else { "" }, titles + GAP);
                lines.push(format!("{}{}", paint.dim(&title), column.painted(text, paint)));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Color;

    const HEAD: [&str; 4] = ["status", "halted", "error", "id"];
    const ID: &str = "notify_order.paid_04b6f200-0000-8000-8000-00000000000f";

    fn plain(head: &[&str], rows: Vec<Vec<String>>, width: Option<usize>) -> Vec<String> {
        lines(head, rows, width, Paint::new(Color::Never))
    }

    fn table(width: Option<usize>) -> Vec<String> {
        let error = "the target said that it has no time for this now, and will have none tomorrow";
        let row = |id: &str| ["FAILED", "0", error, id].map(String::from).to_vec();
        plain(&HEAD, vec![row(ID), row("x")], width)
    }

    fn fits(lines: &[String], most: usize) -> bool {
        lines.iter().all(|line| width(line) <= most)
    }

    #[test]
    fn a_pipe_gets_every_column_and_one_line_a_row() {
        let lines = table(None);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains("HALTED") && lines[0].ends_with("ID"), "{lines:?}");
    }

    #[test]
    fn what_says_nothing_is_left_out_and_texts_are_broken_at_blanks() {
        let lines = table(Some(100));
        assert!(!lines[0].contains("HALTED") && lines.len() > 3, "{lines:?}");
        assert!(fits(&lines, 100) && lines[1].ends_with(ID), "{lines:?}");
    }

    #[test]
    fn a_long_id_goes_below_its_row_whole() {
        let lines = table(Some(60));
        assert!(fits(&lines, 60) && lines.contains(&format!("  {ID}")), "{lines:?}");
        assert_eq!(lines[..2], ["STATUS  ERROR", "  ID"]);
    }

    #[test]
    fn on_a_narrow_terminal_each_row_is_a_block() {
        for most in [17, 16] {
            let lines = table(Some(most));
            assert!(fits(&lines, most) && lines[0] == "STATUS  FAILED", "{lines:?}");
            let id: String = lines
                .iter()
                .skip_while(|line| !line.starts_with("ID"))
                .take_while(|line| !line.is_empty())
                .map(|line| line[2..].trim())
                .collect();
            assert_eq!(id, ID);
        }
        assert!(!table(Some(1)).is_empty());
    }

    #[test]
    fn a_table_that_fits_keeps_all_its_columns() {
        let row = ["a", "0", "", ""].map(String::from).to_vec();
        assert!(plain(&HEAD, vec![row], Some(80))[0].contains("HALTED"));
    }

    #[test]
    fn columns_are_aligned_by_what_is_seen() {
        let rows =
            [["日本", "x"], ["e\u{301}", "y"], ["a\x1b[31m", "z"]].map(|row| row.map(String::from).to_vec());
        let lines = plain(&["key", "v"], rows.to_vec(), None);
        assert_eq!(lines, ["KEY          V", "日本         x", "e\u{301}            y", "a\\u{1b}[31m  z"]);
    }

    #[test]
    fn a_status_has_its_colour_and_the_columns_stay_where_they_are() {
        let row = ["FAILED", "x"].map(String::from).to_vec();
        let lines = lines(&["status", "id"], vec![row], None, Paint::new(Color::Always));
        assert_eq!(lines, ["\x1b[2mSTATUS  ID\x1b[0m", "\x1b[31mFAILED\x1b[0m  x"]);
    }
}
