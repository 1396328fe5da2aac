//! Finds the named queries in the files of `sql/`, at compile time.
//!
//! A file has the queries of one table, or of one concern. Each begins with its name and a comment on its purpose:
//!
//! ```sql
//! -- name: list_due_tasks
//! -- Delayed tasks that are due, the earliest first.
//! SELECT …
//! ```

use pointsman_store::sql_constants::is_text_at;

/// The files, by name.
const QUERY_FILES: &[(&str, &str)] = &[
    ("attempt", include_str!("../sql/attempt.sql")),
    ("audit", include_str!("../sql/audit.sql")),
    ("chain", include_str!("../sql/chain.sql")),
    ("commit", include_str!("../sql/commit.sql")),
    ("doctor", include_str!("../sql/doctor.sql")),
    ("ended_order", include_str!("../sql/ended_order.sql")),
    ("file_digest", include_str!("../sql/file_digest.sql")),
    ("fire", include_str!("../sql/fire.sql")),
    ("handler", include_str!("../sql/handler.sql")),
    ("history", include_str!("../sql/history.sql")),
    ("idempotency", include_str!("../sql/idempotency.sql")),
    ("journal", include_str!("../sql/journal.sql")),
    ("log", include_str!("../sql/log.sql")),
    ("meta", include_str!("../sql/meta.sql")),
    ("migration", include_str!("../sql/migration.sql")),
    ("node", include_str!("../sql/node.sql")),
    ("notification", include_str!("../sql/notification.sql")),
    ("object", include_str!("../sql/object.sql")),
    ("orders", include_str!("../sql/orders.sql")),
    ("outbox", include_str!("../sql/outbox.sql")),
    ("partition", include_str!("../sql/partition.sql")),
    ("queue", include_str!("../sql/queue.sql")),
    ("rule", include_str!("../sql/rule.sql")),
    ("schedule", include_str!("../sql/schedule.sql")),
    ("server", include_str!("../sql/server.sql")),
    ("store_copy", include_str!("../sql/store_copy.sql")),
    ("task", include_str!("../sql/task.sql")),
    ("unit_of_work", include_str!("../sql/unit_of_work.sql")),
];

/// The beginning of the line with a query's name.
const NAME_PREFIX: &str = "-- name: ";

/// Returns the query of a name such as `task/list_due_tasks`: from the line after its name to the next name. An unknown
/// name is a compile error.
pub(crate) const fn find_query(name: &str) -> &'static str {
    let mut index = 0;
    while index < QUERY_FILES.len() {
        let (file, text) = QUERY_FILES[index];
        if is_text_at(name.as_bytes(), 0, file.as_bytes()) && is_text_at(name.as_bytes(), file.len(), b"/") {
            let (_, query_name) = name.split_at(file.len() + 1);
            return find_query_in_file(text, query_name);
        }
        index += 1;
    }
    panic!("there is no such file in sql/, or QUERY_FILES does not list it")
}

const fn find_query_in_file(text: &'static str, query_name: &str) -> &'static str {
    let mut rest = text;
    loop {
        let Some(block) = skip_to_next_name(rest) else { panic!("the file has no query of this name") };
        let name_line_end = end_of_line(block);
        if name_line_end == query_name.len() && is_text_at(block.as_bytes(), 0, query_name.as_bytes()) {
            let (_, query) = block.split_at(name_line_end);
            return match skip_to_next_name(query) {
                Some(next) => query.split_at(query.len() - next.len() - NAME_PREFIX.len()).0.trim_ascii(),
                None => query.trim_ascii(),
            };
        }
        rest = block;
    }
}

/// Returns the text after the next [`NAME_PREFIX`] at the start of a line.
const fn skip_to_next_name(text: &'static str) -> Option<&'static str> {
    let mut rest = text;
    while !rest.is_empty() {
        if is_text_at(rest.as_bytes(), 0, NAME_PREFIX.as_bytes()) {
            return Some(rest.split_at(NAME_PREFIX.len()).1);
        }
        let end = end_of_line(rest);
        rest = rest.split_at(if end < rest.len() { end + 1 } else { end }).1;
    }
    None
}

/// Returns the position of the first line break, or the length of the text if it has none.
const fn end_of_line(text: &str) -> usize {
    let text = text.as_bytes();
    let mut at = 0;
    while at < text.len() && text[at] != b'\n' {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "-- Tasks.\n\n-- name: list\n-- All tasks.\nSELECT 1\n\n-- name: list_due\n-- Due tasks.\nSELECT 2\n";

    #[test]
    fn a_query_ends_where_the_next_one_begins() {
        assert_eq!(find_query_in_file(FILE, "list"), "-- All tasks.\nSELECT 1");
        assert_eq!(find_query_in_file(FILE, "list_due"), "-- Due tasks.\nSELECT 2");
    }

    #[test]
    #[should_panic(expected = "no query of this name")]
    fn a_missing_query_is_an_error() {
        find_query_in_file(FILE, "list_");
    }
}
