//! Tables that fit the width of a terminal.
//!
//! A table that is too wide leaves out columns that are empty in every row, then wraps long texts at blanks. If that is
//! not enough, its last column, which holds long ids, goes below the others:
//!
//! ```text
//!  STATUS   CREATED              TRIES  KEY
//!    ID
//!  FAILED   2026-01-31 12:00:00  1      record:1
//!    index_record.published_04b6f200-0000-8000-8000-00000000000f
//! ```
//!
//! On a narrower terminal each row becomes a block with one line per column. A word is broken only if it is wider than
//! its whole line.

use super::paint::Paint;
use super::text::{
    display_width, escape_controls_in_cell, pad_to_width, split_words, wrap_text, wrap_text_breaking_words,
};

/// The blanks between two columns, and before a last column that is printed below.
const COLUMN_GAP: usize = 2;
/// The minimum widths of a column: the first is tried before the second, the second before rows become blocks.
const MIN_COLUMN_WIDTHS_TO_TRY: [usize; 2] = [20, 10];
/// The minimum width of values in a block, however narrow the terminal is.
const MIN_BLOCK_VALUE_WIDTH: usize = 8;

/// Renders a table as lines. Without a maximum width (a pipe) each row is one line.
pub(super) fn render_table(
    head: &[&str],
    rows: Vec<Vec<String>>,
    max_width: Option<usize>,
    paint: Paint,
) -> Vec<String> {
    let mut columns = collect_columns(head, rows);
    let natural = natural_widths(&columns);
    let Some(max_width) = max_width.filter(|max_width| total_width(&natural) > *max_width) else {
        return render_in_columns(&columns, &natural, paint);
    };
    drop_empty_columns(&mut columns);
    for min_column_width in MIN_COLUMN_WIDTHS_TO_TRY {
        if let Some(widths) = shrink_widths(&columns, max_width, min_column_width) {
            return render_in_columns(&columns, &widths, paint);
        }
        if let Some((last, others)) = columns.split_last()
            && !others.is_empty()
            && let Some(widths) = shrink_widths(others, max_width, min_column_width)
        {
            return render_with_last_column_below(others, &widths, last, max_width, paint);
        }
    }
    render_as_blocks(&columns, max_width, paint)
}

struct Column {
    title: String,
    cells: Vec<String>,
}

fn collect_columns(head: &[&str], rows: Vec<Vec<String>>) -> Vec<Column> {
    let column = |title: &&str| Column { title: title.to_uppercase(), cells: vec![] };
    let mut columns: Vec<Column> = head.iter().map(column).collect();
    for row in rows {
        for (column, cell) in columns.iter_mut().zip(row) {
            column.cells.push(escape_controls_in_cell(&cell).into_owned());
        }
    }
    columns
}

impl Column {
    fn width(&self) -> usize {
        self.cells.iter().chain([&self.title]).map(|text| display_width(text)).max().unwrap_or(0)
    }

    /// The smallest width at which no word and no title is broken, and at least `min_column_width`.
    fn min_width(&self, min_column_width: usize) -> usize {
        let word_widths = self.cells.iter().flat_map(|cell| split_words(cell)).map(display_width);
        word_widths.chain([display_width(&self.title), min_column_width]).max().unwrap_or(min_column_width)
    }

    /// Whether a cell has a value other than none, zero or `no`.
    fn has_meaningful_cell(&self) -> bool {
        self.cells.iter().any(|cell| !matches!(cell.as_str(), "" | "-" | "0" | "no"))
    }

    /// A cell's text, coloured if the column is a status.
    fn paint_cell(&self, text: &str, paint: Paint) -> String {
        if self.title == "STATUS" { paint.color_by_status(text, text).into_owned() } else { text.into() }
    }
}

fn natural_widths(columns: &[Column]) -> Vec<usize> {
    columns.iter().map(Column::width).collect()
}

fn total_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + COLUMN_GAP * widths.len().saturating_sub(1)
}

/// Drops columns without content, but never the first: it names the rows.
fn drop_empty_columns(columns: &mut Vec<Column>) {
    let mut is_first = true;
    columns.retain(|column| std::mem::take(&mut is_first) || column.has_meaningful_cell());
}

/// Column widths that fit `max_width`; none if words would have to be broken.
fn shrink_widths(columns: &[Column], max_width: usize, min_column_width: usize) -> Option<Vec<usize>> {
    let minimums: Vec<usize> = columns.iter().map(|column| column.min_width(min_column_width)).collect();
    let mut widths = natural_widths(columns);
    while total_width(&widths) > max_width {
        // The widest column shrinks first, so that all columns end about equally wide.
        let shrinkable = (0..widths.len()).filter(|&index| widths[index] > minimums[index]);
        let widest = shrinkable.max_by_key(|&index| widths[index])?;
        widths[widest] -= 1;
    }
    Some(widths)
}

fn row_indices(columns: &[Column]) -> std::ops::Range<usize> {
    0..columns.first().map_or(0, |column| column.cells.len())
}

fn render_in_columns(columns: &[Column], widths: &[usize], paint: Paint) -> Vec<String> {
    let mut lines = vec![render_header(columns, widths, paint)];
    lines.extend(row_indices(columns).flat_map(|row| render_row(columns, widths, row, paint)));
    lines
}

fn render_with_last_column_below(
    columns: &[Column],
    widths: &[usize],
    last: &Column,
    max_width: usize,
    paint: Paint,
) -> Vec<String> {
    let indent = |text: &str| format!("{:COLUMN_GAP$}{text}", "");
    let mut lines = vec![render_header(columns, widths, paint), paint.dim(&indent(&last.title)).into_owned()];
    for row in row_indices(columns) {
        lines.extend(render_row(columns, widths, row, paint));
        let text = Some(&last.cells[row]).filter(|text| !text.is_empty());
        lines.extend(
            text.iter()
                .flat_map(|text| wrap_text_breaking_words(text, max_width.saturating_sub(COLUMN_GAP)))
                .map(|text| indent(&text)),
        );
    }
    lines
}

fn render_header(columns: &[Column], widths: &[usize], paint: Paint) -> String {
    let titles = columns.iter().zip(widths).map(|(column, width)| pad_to_width(&column.title, *width));
    paint.dim(join_columns(titles).trim_end()).into_owned()
}

/// The lines of a row, with as many lines as its tallest cell.
fn render_row(columns: &[Column], widths: &[usize], row: usize, paint: Paint) -> Vec<String> {
    let cells: Vec<Vec<String>> =
        columns.iter().zip(widths).map(|(column, width)| wrap_text(&column.cells[row], *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |index: usize| {
        let parts = columns.iter().zip(widths).zip(&cells).map(|((column, width), lines)| {
            pad_to_width(&column.paint_cell(lines.get(index).map_or("", String::as_str), paint), *width)
        });
        join_columns(parts).trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

fn join_columns(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(&" ".repeat(COLUMN_GAP))
}

/// Renders each row as a block, with a line or more for each non-empty column.
fn render_as_blocks(columns: &[Column], max_width: usize, paint: Paint) -> Vec<String> {
    let title_width = columns.iter().map(|column| display_width(&column.title)).max().unwrap_or(0);
    let value_width = max_width.saturating_sub(title_width + COLUMN_GAP).max(MIN_BLOCK_VALUE_WIDTH);
    let mut lines = vec![];
    for row in row_indices(columns) {
        if row > 0 {
            lines.push(String::new());
        }
        for column in columns.iter().filter(|column| !matches!(column.cells[row].as_str(), "" | "-")) {
            for (index, text) in wrap_text_breaking_words(&column.cells[row], value_width).iter().enumerate()
            {
                let title =
                    pad_to_width(if index == 0 { &column.title } else { "" }, title_width + COLUMN_GAP);
                lines.push(format!("{}{}", paint.dim(&title), column.paint_cell(text, paint)));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ColorChoice;

    const TABLE_HEAD: [&str; 4] = ["status", "halted", "error", "id"];
    const LONG_ID: &str = "notify_order.paid_04b6f200-0000-8000-8000-00000000000f";

    fn render_without_colors(head: &[&str], rows: Vec<Vec<String>>, width: Option<usize>) -> Vec<String> {
        render_table(head, rows, width, Paint::for_stdout(ColorChoice::Never))
    }

    fn render_sample_table(width: Option<usize>) -> Vec<String> {
        let error = "the target answered that it has no time for this now, and will have none tomorrow";
        let row = |id: &str| ["FAILED", "0", error, id].map(String::from).to_vec();
        render_without_colors(&TABLE_HEAD, vec![row(LONG_ID), row("x")], width)
    }

    fn all_lines_fit(lines: &[String], max_width: usize) -> bool {
        lines.iter().all(|line| display_width(line) <= max_width)
    }

    #[test]
    fn a_pipe_gets_every_column_and_one_line_per_row() {
        let lines = render_sample_table(None);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains("HALTED") && lines[0].ends_with("ID"), "{lines:?}");
    }

    #[test]
    fn empty_columns_are_left_out_and_texts_wrap_at_blanks() {
        let lines = render_sample_table(Some(100));
        assert!(!lines[0].contains("HALTED") && lines.len() > 3, "{lines:?}");
        assert!(all_lines_fit(&lines, 100) && lines[1].ends_with(LONG_ID), "{lines:?}");
    }

    #[test]
    fn a_long_id_goes_below_its_row_unbroken() {
        let lines = render_sample_table(Some(60));
        assert!(all_lines_fit(&lines, 60) && lines.contains(&format!("  {LONG_ID}")), "{lines:?}");
        assert_eq!(lines[..2], ["STATUS  ERROR", "  ID"]);
    }

    #[test]
    fn on_a_narrow_terminal_each_row_is_a_block() {
        for max_width in [17, 16] {
            let lines = render_sample_table(Some(max_width));
            assert!(all_lines_fit(&lines, max_width) && lines[0] == "STATUS  FAILED", "{lines:?}");
            let id: String = lines
                .iter()
                .skip_while(|line| !line.starts_with("ID"))
                .take_while(|line| !line.is_empty())
                .map(|line| line[2..].trim())
                .collect();
            assert_eq!(id, LONG_ID);
        }
        assert!(!render_sample_table(Some(1)).is_empty());
    }

    #[test]
    fn a_table_that_fits_keeps_all_its_columns() {
        let row = ["a", "0", "", ""].map(String::from).to_vec();
        assert!(render_without_colors(&TABLE_HEAD, vec![row], Some(80))[0].contains("HALTED"));
    }

    #[test]
    fn columns_are_aligned_by_display_width() {
        let rows =
            [["日本", "x"], ["e\u{301}", "y"], ["a\x1b[31m", "z"]].map(|row| row.map(String::from).to_vec());
        let lines = render_without_colors(&["key", "v"], rows.to_vec(), None);
        assert_eq!(lines, ["KEY          V", "日本         x", "e\u{301}            y", "a\\u{1b}[31m  z"]);
    }

    #[test]
    fn a_coloured_status_does_not_shift_the_columns() {
        let row = ["FAILED", "x"].map(String::from).to_vec();
        let lines = render_table(&["status", "id"], vec![row], None, Paint::for_stdout(ColorChoice::Always));
        assert_eq!(lines, ["\x1b[2mSTATUS  ID\x1b[0m", "\x1b[31mFAILED\x1b[0m  x"]);
    }
}
