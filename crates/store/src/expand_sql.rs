//! The names that SQL uses for codes and for lists of columns.
//!
//! SQL refers to them as psql does to its variables. [`expand_sql!`](crate::expand_sql!) replaces each name while the
//! crate is compiled, so that the database sees a constant and finds the partial index of a phase:
//!
//! | in SQL | replaced by |
//! |---|---|
//! | `phase = :ready` | the code of the phase: `phase = 3` |
//! | `SELECT :task_columns` | the columns of the row, as [`crate::columns`] describes them: `seq, event, …` |
//! | `SELECT t.:task_columns` | the same with a prefix: `t.seq, t.event, …` |
//! | `unnest(:task_arrays)` | a parameter of PostgreSQL for each column: `$1::bigint[], $2::bigint[], …` |
//! | `VALUES (:task_parameters)` | a parameter of SQLite for each column: `?1, ?2, …` |
//!
//! The parameters of a list are numbered from the greatest `$n` or `?n` before the name. Other lists do not count: a
//! statement contains one list of parameters.

use crate::columns::{
    ActiveTaskColumns, ArchivedTaskColumns, AttemptColumns, AuditEntryColumns, CellType, ChainColumns,
    Column, Columns, EndedOrderColumns, EventColumns, FileDigestColumns, FireColumns,
    IdempotencyRecordColumns, LogLineColumns, NamedTextColumns, NodeColumns, ObjectColumns, OrderColumns,
    QueueColumns, RuleColumns, ScheduleProgressColumns,
};
use crate::phase::TaskPhase;
use crate::row::{STATUS_DONE, STATUS_ERROR};

/// The names of codes, with their values.
pub const SQL_CODES: &[(&str, i16)] = &[
    ("blocked_by_task", TaskPhase::BlockedByTask.code()),
    ("sync_gated", TaskPhase::SyncGated.code()),
    ("delayed", TaskPhase::Delayed.code()),
    ("ready", TaskPhase::Ready.code()),
    ("scheduled", TaskPhase::Scheduled.code()),
    ("locked", TaskPhase::Locked.code()),
    ("halted", TaskPhase::Halted.code()),
    ("missing", TaskPhase::Missing.code()),
    ("status_done", STATUS_DONE),
    ("status_error", STATUS_ERROR),
];

/// The lists of columns, with the beginning of their names: `task` for `:task_columns`.
const COLUMN_LISTS: &[(&str, &[Column])] = &[
    ("archived_task", ArchivedTaskColumns::COLUMNS),
    ("attempt", AttemptColumns::COLUMNS),
    ("audit_entry", AuditEntryColumns::COLUMNS),
    ("chain", ChainColumns::COLUMNS),
    ("ended_order", EndedOrderColumns::COLUMNS),
    ("event", EventColumns::COLUMNS),
    ("file_digest", FileDigestColumns::COLUMNS),
    ("fire", FireColumns::COLUMNS),
    ("idempotency_record", IdempotencyRecordColumns::COLUMNS),
    ("log_line", LogLineColumns::COLUMNS),
    ("named_text", NamedTextColumns::COLUMNS),
    ("node", NodeColumns::COLUMNS),
    ("object", ObjectColumns::COLUMNS),
    ("order", OrderColumns::COLUMNS),
    ("queue", QueueColumns::COLUMNS),
    ("rule", RuleColumns::COLUMNS),
    ("schedule", ScheduleProgressColumns::COLUMNS),
    ("task", ActiveTaskColumns::COLUMNS),
];

/// Replaces the names of codes and of lists of columns in a constant; evaluates to a `&'static str`. An unknown name is
/// a compile error.
#[macro_export]
macro_rules! expand_sql {
    ($sql:expr $(,)?) => {{
        const SQL: &str = $sql;
        const LENGTH: usize = $crate::expand_sql::expand::<0>(SQL).1;
        const BYTES: [u8; LENGTH] = $crate::expand_sql::expand(SQL).0;
        const EXPANDED: &str = match ::core::str::from_utf8(&BYTES) {
            Ok(expanded) => expanded,
            Err(_) => panic!("a name was replaced inside of a character"),
        };
        EXPANDED
    }};
}

/// Replaces the names in a statement. Returns the first `N` bytes of the result, and its length.
#[doc(hidden)]
pub const fn expand<const N: usize>(sql: &str) -> ([u8; N], usize) {
    let sql = sql.as_bytes();
    let mut output = ExpandedSql { bytes: [0; N], length: 0 };
    let (mut at, mut last_parameter) = (0, 0);
    while at < sql.len() {
        // The other bytes are the bulk, and constants are evaluated slowly.
        let may_begin_token = matches!(sql[at], b'-' | b'\'' | b':' | b'$' | b'?');
        let end = if may_begin_token { find_token_end(sql, at) } else { at + 1 };
        if may_begin_token && is_name_at(sql, at) {
            let (prefix_start, name) = (find_prefix_start(sql, at), (at + 1, end));
            output.push_value_of_name(sql, prefix_start, name, last_parameter);
        } else {
            if matches!(sql[at], b'$' | b'?') {
                let parameter = parse_number(sql, at + 1, end);
                last_parameter = if parameter > last_parameter { parameter } else { last_parameter };
            }
            output.push_bytes(sql, at, end);
        }
        at = end;
    }
    (output.bytes, output.length)
}

/// The expanded statement, or as much of it as fits into `N` bytes, and its full length.
struct ExpandedSql<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> ExpandedSql<N> {
    const fn push(&mut self, byte: u8) {
        if self.length < N {
            self.bytes[self.length] = byte;
        }
        self.length += 1;
    }

    const fn push_bytes(&mut self, bytes: &[u8], start: usize, end: usize) {
        let mut at = start;
        while at < end {
            self.push(bytes[at]);
            at += 1;
        }
    }

    const fn push_text(&mut self, text: &str) {
        self.push_bytes(text.as_bytes(), 0, text.len());
    }

    const fn push_number(&mut self, number: usize) {
        let mut divisor = 1;
        while number / divisor >= 10 {
            divisor *= 10;
        }
        while divisor > 0 {
            self.push(b'0' + (number / divisor % 10) as u8);
            divisor /= 10;
        }
    }

    /// Pushes the value of the name at a position. The text from `prefix_start` to the name is pushed already.
    const fn push_value_of_name(
        &mut self,
        sql: &[u8],
        prefix_start: usize,
        name: (usize, usize),
        last_parameter: usize,
    ) {
        let (start, end) = name;
        let mut index = 0;
        while index < SQL_CODES.len() {
            let (name, code) = SQL_CODES[index];
            if is_text_between(sql, start, end, name, "") {
                return self.push_number(code as usize);
            }
            index += 1;
        }
        index = 0;
        while index < COLUMN_LISTS.len() {
            let (name, columns) = COLUMN_LISTS[index];
            if is_text_between(sql, start, end, name, "_columns") {
                return self.push_column_names(columns, sql, prefix_start, start - 1);
            }
            if is_text_between(sql, start, end, name, "_arrays") {
                return self.push_array_parameters(columns, last_parameter);
            }
            if is_text_between(sql, start, end, name, "_parameters") {
                return self.push_numbered_parameters(columns, last_parameter);
            }
            index += 1;
        }
        panic!("SQL contains a name that is in neither SQL_CODES nor COLUMN_LISTS")
    }

    const fn push_column_names(
        &mut self,
        columns: &[Column],
        sql: &[u8],
        prefix_start: usize,
        prefix_end: usize,
    ) {
        let mut index = 0;
        while index < columns.len() {
            if index > 0 {
                self.push_text(", ");
                self.push_bytes(sql, prefix_start, prefix_end);
            }
            self.push_text(columns[index].name);
            index += 1;
        }
    }

    const fn push_array_parameters(&mut self, columns: &[Column], last_parameter: usize) {
        let mut index = 0;
        while index < columns.len() {
            self.push_text(if index > 0 { ", $" } else { "$" });
            self.push_number(last_parameter + index + 1);
            self.push_text(match columns[index].cell_type {
                CellType::Int8 => "::bigint[]",
                CellType::Int4 => "::integer[]",
                CellType::Int2 => "::smallint[]",
                CellType::Bool => "::boolean[]",
                CellType::Text => "::text[]",
                CellType::Bytes => "::bytea[]",
            });
            index += 1;
        }
    }

    const fn push_numbered_parameters(&mut self, columns: &[Column], last_parameter: usize) {
        let mut index = 0;
        while index < columns.len() {
            self.push_text(if index > 0 { ", ?" } else { "?" });
            self.push_number(last_parameter + index + 1);
            index += 1;
        }
    }
}

/// Returns whether a name begins at this position: a colon and a letter. The second colon of a cast does not count.
const fn is_name_at(sql: &[u8], at: usize) -> bool {
    sql[at] == b':' && at + 1 < sql.len() && sql[at + 1].is_ascii_lowercase()
}

/// Returns where the prefix of a name begins, such as `t.`; the position of the name if it has none.
const fn find_prefix_start(sql: &[u8], at: usize) -> usize {
    if at == 0 || sql[at - 1] != b'.' {
        return at;
    }
    let mut start = at - 1;
    while start > 0 && (sql[start - 1].is_ascii_alphanumeric() || sql[start - 1] == b'_') {
        start -= 1;
    }
    start
}

/// Returns the end of what begins at this position: a comment, a string literal, a name, the colons of a cast, a
/// parameter, or any other byte.
const fn find_token_end(sql: &[u8], at: usize) -> usize {
    let next = if at + 1 < sql.len() { sql[at + 1] } else { 0 };
    let mut end = at + 1;
    match (sql[at], next) {
        (b'-', b'-') => {
            while end < sql.len() && sql[end] != b'\n' {
                end += 1;
            }
        }
        (b'\'', _) => {
            while end < sql.len() && sql[end] != b'\'' {
                end += 1;
            }
            end += 1;
        }
        (b':', b':') => end += 1,
        (b':', b'a'..=b'z') => {
            while end < sql.len() && (sql[end].is_ascii_lowercase() || sql[end] == b'_') {
                end += 1;
            }
        }
        (b'$' | b'?', b'0'..=b'9') => {
            while end < sql.len() && sql[end].is_ascii_digit() {
                end += 1;
            }
        }
        _ => {}
    }
    if end < sql.len() { end } else { sql.len() }
}

/// Parses the digits between two positions; 0 if there are none.
const fn parse_number(sql: &[u8], start: usize, end: usize) -> usize {
    let (mut number, mut at) = (0, start);
    while at < end {
        number = 10 * number + (sql[at] - b'0') as usize;
        at += 1;
    }
    number
}

/// Returns whether the text between two positions consists of these two parts.
const fn is_text_between(sql: &[u8], start: usize, end: usize, first: &str, second: &str) -> bool {
    first.len() + second.len() == end - start
        && is_text_at(sql, start, first.as_bytes())
        && is_text_at(sql, start + first.len(), second.as_bytes())
}

/// Returns whether a text is at this position.
#[doc(hidden)]
pub const fn is_text_at(sql: &[u8], at: usize, text: &[u8]) -> bool {
    let mut index = 0;
    while index < text.len() {
        if at + index >= sql.len() || sql[at + index] != text[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_replaced_except_in_comments_literals_and_casts() {
        let expanded = expand_sql!(
            "-- Due at 12:30, not :ready.
             SELECT ':ready', 'it''s :ready', $1::bigint, ':'::text, \"é\" FROM task
             WHERE phase IN (:ready,:blocked_by_task) AND status = :status_error AND phase <= :locked"
        );
        assert_eq!(
            expanded,
            "-- Due at 12:30, not :ready.
             SELECT ':ready', 'it''s :ready', $1::bigint, ':'::text, \"é\" FROM task
             WHERE phase IN (3,0) AND status = 1 AND phase <= 5"
        );
    }

    #[test]
    fn a_list_of_columns_repeats_its_prefix() {
        assert_eq!(
            expand_sql!("SELECT :attempt_columns, l.:named_text_columns FROM log l"),
            "SELECT task, number, started, ended, outcome, error, l.name, l.text FROM log l"
        );
    }

    #[test]
    fn parameters_are_counted_from_the_greatest_before_them() {
        assert_eq!(
            expand_sql!("SELECT $2, $1, unnest(:attempt_arrays), $9"),
            "SELECT $2, $1, unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[], \
             $8::text[]), $9"
        );
        assert_eq!(expand_sql!("VALUES (?1, :named_text_parameters)"), "VALUES (?1, ?2, ?3)");
    }
}
