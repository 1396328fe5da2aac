//! The codes that SQL refers to by name.
//!
//! SQL names them as psql does its variables: `WHERE phase = :ready`. [`expand_sql!`](crate::expand_sql) replaces each
//! name by its value while the crate is compiled, so that the database sees a constant and finds the partial index of a
//! phase.

use crate::phase::TaskPhase;
use crate::row::{STATUS_DONE, STATUS_ERROR};

/// The names, with their values.
pub const SQL_CONSTANTS: &[(&str, i64)] = &[
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

/// Replaces the names of [`SQL_CONSTANTS`] in a constant by their values; evaluates to a `&'static str`. An unknown
/// name is a compile error.
#[macro_export]
macro_rules! expand_sql {
    ($sql:expr $(,)?) => {{
        const SQL: &str = $sql;
        const LENGTH: usize = $crate::sql_constants::expand::<0>(SQL).1;
        const BYTES: [u8; LENGTH] = $crate::sql_constants::expand(SQL).0;
        const EXPANDED: &str = match ::core::str::from_utf8(&BYTES) {
            Ok(expanded) => expanded,
            Err(_) => panic!("a name was replaced inside of a character"),
        };
        EXPANDED
    }};
}

/// Replaces the names in a statement by their values. Returns the first `N` bytes of the result, and its length.
#[doc(hidden)]
pub const fn expand<const N: usize>(sql: &str) -> ([u8; N], usize) {
    let sql = sql.as_bytes();
    let (mut expanded, mut length) = ([0; N], 0);
    let mut at = 0;
    while at < sql.len() {
        // The other bytes are the bulk, and constants are evaluated slowly.
        let may_begin_token = matches!(sql[at], b'-' | b'\'' | b':');
        let end = if may_begin_token { token_end(sql, at) } else { at + 1 };
        if may_begin_token && is_name_at(sql, at) {
            let value = value_of_name(sql, at + 1, end);
            let mut divisor = 1;
            while value / divisor >= 10 {
                divisor *= 10;
            }
            while divisor > 0 {
                if length < N {
                    expanded[length] = b'0' + (value / divisor % 10) as u8;
                }
                length += 1;
                divisor /= 10;
            }
        } else {
            let mut copied = at;
            while copied < end {
                if length < N {
                    expanded[length] = sql[copied];
                }
                length += 1;
                copied += 1;
            }
        }
        at = end;
    }
    (expanded, length)
}

/// Returns whether a name begins at this position: a colon and a letter. The second colon of a cast does not count.
const fn is_name_at(sql: &[u8], at: usize) -> bool {
    sql[at] == b':' && at + 1 < sql.len() && sql[at + 1].is_ascii_lowercase()
}

/// Returns the end of what begins at this position: a comment, a string literal, a name, the colons of a cast, or any
/// other byte.
const fn token_end(sql: &[u8], at: usize) -> usize {
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
        _ => {}
    }
    if end < sql.len() { end } else { sql.len() }
}

/// Returns the value of the name between these positions.
const fn value_of_name(sql: &[u8], start: usize, end: usize) -> i64 {
    let mut index = 0;
    while index < SQL_CONSTANTS.len() {
        let (name, value) = SQL_CONSTANTS[index];
        if is_text_at(sql, start, name.as_bytes()) && name.len() == end - start {
            return value;
        }
        index += 1;
    }
    panic!("SQL contains a name that is not in SQL_CONSTANTS")
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
}
