//! Synthetic older layouts of the schema, for the tests of migrations.

use pointsman_store::expand_sql;
use pointsman_store_postgres::Migration;

/// An older layout, made from the initial one, and the migrations that lead from it to the newest one. A new migration
/// of the store is added at the end.
pub(crate) const MIGRATIONS_FROM_OLDER_LAYOUT: &[Migration] = &[
    (
        "0001_older",
        expand_sql!(concat!(
            include_str!("../../migrations/0001_initial/tables.sql"),
            include_str!("../../migrations/0001_initial/documented_tables.sql"),
            include_str!("../../migrations/0001_initial/outbox.sql"),
            include_str!("0001_older.sql"),
        )),
    ),
    ("0002_commit_versions", include_str!("0002_commit_versions.sql")),
    ("0003_orders_and_objects", include_str!("0003_orders_and_objects.sql")),
];
