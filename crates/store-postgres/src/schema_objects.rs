//! The objects of the schema, as `schema.sql` lists them, and the tables that always have rows.

use std::collections::HashSet;

use tokio_postgres::Row;

/// The schema of the newest layout; a test compares it with that of a new database.
const SCHEMA_SQL: &str = include_str!("../schema.sql");

/// The objects that exist in the database, as `migration/list_schema_objects` returns them.
pub(crate) struct ExistingSchemaObjects(HashSet<String>);

impl ExistingSchemaObjects {
    pub(crate) fn from_rows(rows: &[Row]) -> Result<Self, tokio_postgres::Error> {
        rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map(Self)
    }

    /// Lists missing objects by kind and name. Objects of a missing table are not listed.
    pub(crate) fn list_missing(&self) -> Vec<String> {
        let has = |name: &str| self.0.contains(name);
        let is_missing = |object: &&SchemaObject| {
            let has_table = object.table.as_ref().is_none_or(|table| has(&format!("table {table}")));
            has_table && !has(&object.kind_and_name)
        };
        parse_schema_objects(SCHEMA_SQL)
            .iter()
            .filter(is_missing)
            .map(|object| object.kind_and_name.clone())
            .collect()
    }
}

/// Lists the tables that always have a row, single-row tables, and the view `last_commit`, which does too.
pub(crate) fn list_never_empty_tables() -> Vec<String> {
    let single_row_table = |object: &SchemaObject| {
        let table = object.table.clone()?;
        (object.kind_and_name == format!("column {table}.singleton")).then_some(table)
    };
    let single_row_tables = parse_schema_objects(SCHEMA_SQL)
        .iter()
        .filter_map(single_row_table)
        .filter(|table| table != "last_commit")
        .collect::<Vec<_>>();
    single_row_tables.into_iter().chain(["last_commit".into()]).collect()
}

/// Lists the names of the schema's tables, views, sequences, functions and types.
pub(crate) fn list_schema_object_names() -> Vec<String> {
    let top_level = parse_schema_objects(SCHEMA_SQL).into_iter().filter(|object| object.table.is_none());
    top_level.filter_map(|object| Some(object.kind_and_name.split_once(' ')?.1.to_owned())).collect()
}

/// An object of the schema.
#[derive(Debug, PartialEq, Eq)]
struct SchemaObject {
    /// For instance `table fire`, `column fire.at` or `index fire_recorded_at`.
    kind_and_name: String,
    /// The table that a column or an index belongs to; none for other kinds.
    table: Option<String>,
}

/// Parses the objects of a schema from the output of pg_dump.
fn parse_schema_objects(schema: &str) -> Vec<SchemaObject> {
    let mut objects = Vec::new();
    // The table that the following indented lines belong to.
    let mut table: Option<String> = None;
    for line in schema.lines() {
        if let Some(column) = line.strip_prefix("    ") {
            let object = table.as_deref().and_then(|table| parse_table_line(table, column));
            objects.extend(object);
            continue;
        }
        let (object, next_table) = parse_top_level_line(line);
        objects.extend(object);
        table = next_table;
    }
    objects
}

/// Parses a top-level line: the object that it creates, and the table that the next lines belong to.
fn parse_top_level_line(line: &str) -> (Option<SchemaObject>, Option<String>) {
    let top_level = |kind: &str, rest: &str| SchemaObject {
        kind_and_name: format!("{kind} {}", parse_leading_name(rest)),
        table: None,
    };
    if let Some(rest) = line.strip_prefix("CREATE TABLE pointsman.") {
        return (Some(top_level("table", rest)), Some(parse_leading_name(rest)));
    }
    if let Some(rest) = line.strip_prefix("ALTER TABLE ONLY pointsman.") {
        return (None, Some(parse_leading_name(rest)));
    }
    let kinds = ["VIEW", "SEQUENCE", "FUNCTION", "TYPE"];
    let object = kinds.iter().find_map(|kind| {
        let rest = line.strip_prefix("CREATE ")?.strip_prefix(kind)?.strip_prefix(" pointsman.")?;
        Some(top_level(&kind.to_lowercase(), rest))
    });
    (object.or_else(|| parse_index(line)), None)
}

/// Parses a line such as `CREATE INDEX fire_recorded_at ON pointsman.fire USING …`; none if it creates no index.
fn parse_index(line: &str) -> Option<SchemaObject> {
    let rest = line.strip_prefix("CREATE INDEX ").or_else(|| line.strip_prefix("CREATE UNIQUE INDEX "))?;
    let (index, rest) = rest.split_once(" ON ")?;
    let table = rest.strip_prefix("ONLY ").unwrap_or(rest).strip_prefix("pointsman.")?;
    Some(SchemaObject { kind_and_name: format!("index {index}"), table: Some(parse_leading_name(table)) })
}

/// Parses an indented line of a table: a column; or a primary or unique key, which is an index with the key's name.
fn parse_table_line(table: &str, line: &str) -> Option<SchemaObject> {
    let table_name = Some(table.to_owned());
    match line.strip_prefix("ADD CONSTRAINT ") {
        Some(rest) if rest.contains(" PRIMARY KEY ") || rest.contains(" UNIQUE ") => Some(SchemaObject {
            kind_and_name: format!("index {}", parse_leading_name(rest)),
            table: table_name,
        }),
        Some(_) => None,
        None if line.starts_with("CONSTRAINT ") => None,
        None => Some(SchemaObject {
            kind_and_name: format!("column {table}.{}", parse_leading_name(line)),
            table: table_name,
        }),
    }
}

/// Returns the name at the start of a text, without quotes.
fn parse_leading_name(text: &str) -> String {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').find(|word| !word.is_empty()).unwrap_or("").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_row_tables_are_listed_as_never_empty() {
        let tables = list_never_empty_tables();
        assert!(
            ["outbox_progress", "last_commit"].iter().all(|table| tables.iter().any(|it| it == table)),
            "{tables:?}"
        );
    }

    #[test]
    fn every_kind_of_object_is_parsed_from_a_schema() {
        let schema = "\
CREATE TYPE pointsman.status AS ENUM (
    'new'
);

CREATE FUNCTION pointsman.at(micros bigint) RETURNS bigint
    LANGUAGE sql

CREATE TABLE pointsman.chain (
    path text NOT NULL,
    \"by\" bigint,
    CONSTRAINT small CHECK ((by < 3))
)
WITH (fillfactor='70');

ALTER TABLE ONLY pointsman.chain
    ADD CONSTRAINT chain_pkey PRIMARY KEY (path);

CREATE UNIQUE INDEX chain_by ON ONLY pointsman.chain USING btree (by);
";
        let found: Vec<_> =
            parse_schema_objects(schema).into_iter().map(|object| object.kind_and_name).collect();
        assert_eq!(
            found,
            [
                "type status",
                "function at",
                "table chain",
                "column chain.path",
                "column chain.by",
                "index chain_pkey",
                "index chain_by"
            ]
        );
    }
}
