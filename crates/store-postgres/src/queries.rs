//! Finds the named queries in the files of `sql/`, at compile time.
//!
//! A file has the queries of one table, or of one concern. Each begins with its name and a comment on its purpose:
//!
//! ```sql
//! -- name: list_due_tasks
//! -- Delayed tasks that are due, the earliest first.
//! SELECT …
//! ```

use pointsman_store::expand_sql::is_text_at;

/// The texts of the query files, by name.
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

/// A query with its file and its name.
#[derive(Clone, Copy)]
struct NamedQuery {
    file: &'static str,
    name: &'static str,
    sql: &'static str,
}

/// All queries. The files are parsed once: searching them for each query adds 3 s to each compilation.
const QUERIES: &[NamedQuery] = &parse_queries::<{ parse_queries::<0>(QUERY_FILES).1 }>(QUERY_FILES).0;

/// Returns the query of a name such as `task/list_due_tasks`. An unknown name is a compile error.
pub(crate) const fn find_query(name: &str) -> &'static str {
    let mut index = 0;
    while index < QUERIES.len() {
        let query = QUERIES[index];
        if has_file_and_name(query, name) {
            return query.sql;
        }
        index += 1;
    }
    panic!("no file in QUERY_FILES has a query of this name")
}

const fn has_file_and_name(query: NamedQuery, name: &str) -> bool {
    let (name, file) = (name.as_bytes(), query.file);
    name.len() == file.len() + 1 + query.name.len()
        && is_text_at(name, file.len() + 1, query.name.as_bytes())
        && is_text_at(name, file.len(), b"/")
        && is_text_at(name, 0, file.as_bytes())
}

/// Parses files into queries: each reaches from the line after its name to the next name. Returns the first `N` queries,
/// and the number of all.
const fn parse_queries<const N: usize>(
    files: &'static [(&'static str, &'static str)],
) -> ([NamedQuery; N], usize) {
    let mut queries = [NamedQuery { file: "", name: "", sql: "" }; N];
    let (mut count, mut index) = (0, 0);
    while index < files.len() {
        let (file, text) = files[index];
        let mut rest = skip_to_next_name(text);
        while let Some(block) = rest {
            let (name, sql) = block.split_at(end_of_line(block));
            rest = skip_to_next_name(sql);
            let length = match rest {
                Some(next) => sql.len() - next.len() - NAME_PREFIX.len(),
                None => sql.len(),
            };
            if count < N {
                queries[count] = NamedQuery { file, name, sql: sql.split_at(length).0.trim_ascii() };
            }
            count += 1;
        }
        index += 1;
    }
    (queries, count)
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

    #[test]
    fn a_query_ends_where_the_next_one_begins() {
        const FILES: &[(&str, &str)] = &[
            (
                "task",
                "-- Tasks.\n\n-- name: list\n-- All tasks.\nSELECT 1\n\n-- name: list_due\n-- Due.\nSELECT 2\n",
            ),
            ("log", "-- name: list\n-- Lines.\nSELECT 3\n"),
        ];
        let (queries, count) = parse_queries::<3>(FILES);
        assert_eq!(count, 3);
        assert_eq!(
            queries.map(|query| (query.file, query.name, query.sql)),
            [
                ("task", "list", "-- All tasks.\nSELECT 1"),
                ("task", "list_due", "-- Due.\nSELECT 2"),
                ("log", "list", "-- Lines.\nSELECT 3"),
            ]
        );
    }

    #[test]
    #[should_panic(expected = "a query of this name")]
    fn an_unknown_name_is_an_error() {
        find_query("task/list_due");
    }
}
