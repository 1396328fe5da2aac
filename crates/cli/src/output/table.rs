//! Tables that keep to the width of a terminal as far as words allow.
//!
//! A table that is too wide leaves out the columns that say nothing in any row, then breaks long texts at blanks.
//! A word is never broken, for it may be an id or a name that somebody wants to copy: what still does not fit runs
//! over the edge. So what is long and without blanks stands last.

use comfy_table::{ContentArrangement, Table, presets};

/// Between two columns.
const GAP: usize = 2;
/// No column is made narrower than this: it is what a time takes.
const NARROW: usize = 20;

/// The width to keep to. A pipe has none: broken cells would spoil what it is read by.
pub(super) fn terminal() -> Option<usize> {
    Table::new().width().map(Into::into).filter(|width| *width > 0)
}

/// The lines of a table.
pub(super) fn lines(head: &[&str], rows: Vec<Vec<String>>, width: Option<usize>) -> Vec<String> {
    let mut columns = columns(head, rows);
    if let Some(width) = width {
        fit(&mut columns, width);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().map(|column| column.title.clone()));
    let rows = columns.first().map_or(0, |column| column.cells.len());
    table.add_rows((0..rows).map(|row| columns.iter().map(move |column| column.cells[row].clone())));
    // The table has a margin of its own; everything else begins at the edge.
    let line = |line: &str| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned();
    table.to_string().lines().map(line).collect()
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
            column.cells.push(cell);
        }
    }
    columns
}

impl Column {
    fn width(&self) -> usize {
        self.texts().map(length).max().unwrap_or(0)
    }

    /// The least width at which no word and no title is broken.
    fn least(&self) -> usize {
        let words = self.cells.iter().flat_map(|cell| cell.split(' ')).map(length);
        words.chain([length(&self.title), NARROW]).max().unwrap_or(NARROW)
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.cells.iter().map(String::as_str).chain([self.title.as_str()])
    }

    fn says_something(&self) -> bool {
        self.cells.iter().any(|cell| !matches!(cell.as_str(), "" | "-" | "0" | "no"))
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Makes a table as narrow as it must be and may be.
fn fit(columns: &mut Vec<Column>, most: usize) {
    let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    let widths = |columns: &[Column]| columns.iter().map(Column::width).collect::<Vec<_>>();
    if total(&widths(columns)) <= most {
        return;
    }
    let mut first = true;
    // The first column names the rows.
    columns.retain(|column| std::mem::take(&mut first) || column.says_something());
    let (mut widths, least) = (widths(columns), columns.iter().map(Column::least).collect::<Vec<_>>());
    while total(&widths) > most {
        // The widest gives way first, so that all end about as wide.
        let giving = (0..widths.len()).filter(|&at| widths[at] > least[at]).max_by_key(|&at| widths[at]);
        let Some(at) = giving else { break };
        widths[at] -= 1;
    }
    for (column, width) in columns.iter_mut().zip(widths) {
        for cell in &mut column.cells {
            *cell = broken(cell, width);
        }
    }
}

/// A text in lines of at most so many characters, broken at blanks only.
fn broken(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.into();
    }
    let mut lines: Vec<String> = vec![];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: [&str; 4] = ["status", "halted", "error", "id"];
    const ID: &str = "notify_order.paid_04b6f200-0000-8000-8000-00000000000f";

    fn table(width: Option<usize>) -> Vec<String> {
        let error = "the target said that it has no time for this now, and will have none tomorrow";
        let row = |id: &str| ["FAILED", "0", error, id].map(String::from).to_vec();
        lines(&HEAD, vec![row(ID), row("x")], width)
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
        assert!(lines.iter().all(|line| length(line) <= 100), "{lines:?}");
        assert!(lines[1].ends_with(ID), "{lines:?}");
    }

    #[test]
    fn an_id_runs_over_the_edge_whole() {
        let lines = table(Some(60));
        assert!(lines[1].ends_with(ID) && lines[0].ends_with("ID"), "{lines:?}");
    }

    #[test]
    fn a_table_that_fits_keeps_all_its_columns() {
        let row = ["a", "0", "", ""].map(String::from).to_vec();
        assert!(lines(&HEAD, vec![row], Some(80))[0].contains("HALTED"));
    }

    #[test]
    fn a_word_is_never_broken() {
        assert_eq!(broken("one two three", 7), "one two\nthree");
        assert_eq!(broken("anextraordinarilylongword it is", 5), "anextraordinarilylongword\nit is");
    }
}
