//! What belongs to the schema: all that the layouts make, as `schema.sql` lists it, and the rows that are always there.

use std::collections::HashSet;

use tokio_postgres::Row;

/// The newest layout, as a test keeps it.
const SCHEMA: &str = include_str!("../schema.sql");

/// The names that the database has, as `open/things.sql` tells them.
pub(crate) struct Inventory(HashSet<String>);

impl Inventory {
    pub(crate) fn read(rows: &[Row]) -> Result<Self, tokio_postgres::Error> {
        rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map(Self)
    }

    /// What is not there, each by its kind and name. What belongs to a table that is missing is not named beside it.
    pub(crate) fn missing(&self) -> Vec<String> {
        let has = |name: &str| self.0.contains(name);
        let gone = |thing: &&Thing| {
            let table = thing.of.as_ref().is_none_or(|table| has(&format!("table {table}")));
            table && !has(&thing.name)
        };
        things(SCHEMA).iter().filter(gone).map(|thing| thing.name.clone()).collect()
    }
}

/// Tables and views that have a row, whatever the store holds: one that is made with them, and how far everything has come.
pub(crate) fn never_empty() -> Vec<String> {
    let single = |thing: &Thing| {
        let table = thing.of.clone()?;
        (thing.name == format!("column {table}.one")).then_some(table)
    };
    let singles =
        things(SCHEMA).iter().filter_map(single).filter(|table| table != "sequencer").collect::<Vec<_>>();
    singles.into_iter().chain(["sequencer".into()]).collect()
}

/// The names of our tables, views, sequences, functions and types.
pub(crate) fn names() -> Vec<String> {
    let whole = things(SCHEMA).into_iter().filter(|thing| thing.of.is_none());
    whole.filter_map(|thing| Some(thing.name.split_once(' ')?.1.to_owned())).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Thing {
    /// With its kind before it.
    name: String,
    /// The table that it belongs to.
    of: Option<String>,
}

/// All that a schema makes, as pg_dump writes it.
fn things(schema: &str) -> Vec<Thing> {
    let mut things = Vec::new();
    // The table whose columns or constraints the lines are about.
    let mut table: Option<String> = None;
    for line in schema.lines() {
        if let Some(column) = line.strip_prefix("    ") {
            let made = table.as_deref().and_then(|table| inside(table, column));
            things.extend(made);
            continue;
        }
        let (made, inner) = outside(line);
        things.extend(made);
        table = inner;
    }
    things
}

/// What a line makes, and the table that the lines after it are about.
fn outside(line: &str) -> (Option<Thing>, Option<String>) {
    let whole = |kind: &str, rest: &str| Thing { name: format!("{kind} {}", name(rest)), of: None };
    if let Some(rest) = line.strip_prefix("CREATE TABLE pointsman.") {
        return (Some(whole("table", rest)), Some(name(rest)));
    }
    if let Some(rest) = line.strip_prefix("ALTER TABLE ONLY pointsman.") {
        return (None, Some(name(rest)));
    }
    let kinds = ["VIEW", "SEQUENCE", "FUNCTION", "TYPE"];
    let made = kinds.iter().find_map(|kind| {
        let rest = line.strip_prefix("CREATE ")?.strip_prefix(kind)?.strip_prefix(" pointsman.")?;
        Some(whole(&kind.to_lowercase(), rest))
    });
    (made.or_else(|| index(line)), None)
}

/// `CREATE INDEX fire_at ON pointsman.fire USING …`
fn index(line: &str) -> Option<Thing> {
    let rest = line.strip_prefix("CREATE INDEX ").or_else(|| line.strip_prefix("CREATE UNIQUE INDEX "))?;
    let (index, rest) = rest.split_once(" ON ")?;
    let table = rest.strip_prefix("ONLY ").unwrap_or(rest).strip_prefix("pointsman.")?;
    Some(Thing { name: format!("index {index}"), of: Some(name(table)) })
}

/// A column of a table, or a key of it, which is an index of its name.
fn inside(table: &str, line: &str) -> Option<Thing> {
    let of = Some(table.to_owned());
    match line.strip_prefix("ADD CONSTRAINT ") {
        Some(rest) if rest.contains(" PRIMARY KEY ") || rest.contains(" UNIQUE ") => {
            Some(Thing { name: format!("index {}", name(rest)), of })
        }
        Some(_) => None,
        None if line.starts_with("CONSTRAINT ") => None,
        None => Some(Thing { name: format!("column {table}.{}", name(line)), of }),
    }
}

/// The name that a text begins with.
fn name(text: &str) -> String {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').find(|word| !word.is_empty()).unwrap_or("").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_tables_are_never_empty() {
        let tables = never_empty();
        assert!(
            ["outbox_mark", "sequencer"].iter().all(|table| tables.iter().any(|it| it == table)),
            "{tables:?}"
        );
    }

    #[test]
    fn all_kinds_of_things_are_found_in_a_schema() {
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
        let found: Vec<_> = things(schema).into_iter().map(|thing| thing.name).collect();
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
