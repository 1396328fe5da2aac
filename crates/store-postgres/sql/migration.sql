-- The schema and its migrations.

-- name: acquire_migration_lock
-- Takes the migration lock until the end of the transaction.
SELECT pg_advisory_xact_lock($1)

-- name: list_lock_holders
-- Sessions that prevent reading or changing the layout: those that have the advisory lock ($1, $2), or a lock on a
-- table of the schema. The oldest first, each with the age of its transaction in seconds.
SELECT a.pid, coalesce(a.usename::text, ''), a.application_name,
       coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::float8
FROM pg_stat_activity a
WHERE a.pid <> pg_backend_pid() AND a.pid IN (
    SELECT l.pid FROM pg_locks l
    WHERE l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (l.locktype = 'advisory' AND l.classid::bigint = $1 AND l.objid::bigint = $2 AND l.objsubid = 1
           OR l.locktype = 'relation'
              AND l.relation IN (SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace('pointsman'))))
ORDER BY a.xact_start
LIMIT 3

-- name: read_schema_state
-- Whether the schema has the table of migrations, and whether it is empty. Returns no row if there is no schema
-- `pointsman`.
SELECT EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = s.oid AND c.relname = 'migration'),
       NOT EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = s.oid)
           AND NOT EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = s.oid)
           AND NOT EXISTS (SELECT FROM pg_type t WHERE t.typnamespace = s.oid)
FROM pg_namespace s
WHERE s.nspname = 'pointsman'

-- name: list_schema_objects
-- All objects of the schema, by kind and name: tables, views, sequences and indexes, columns, functions, types.
SELECT CASE c.relkind WHEN 'v' THEN 'view ' WHEN 'S' THEN 'sequence ' WHEN 'i' THEN 'index ' WHEN 'I' THEN 'index '
                      ELSE 'table ' END || c.relname
FROM pg_class c WHERE c.relnamespace = 'pointsman'::regnamespace
UNION ALL
SELECT 'column ' || c.relname || '.' || a.attname
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'pointsman'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'function ' || p.proname FROM pg_proc p WHERE p.pronamespace = 'pointsman'::regnamespace
UNION ALL
SELECT 'type ' || t.typname FROM pg_type t WHERE t.typnamespace = 'pointsman'::regnamespace AND t.typtype = 'e'

-- name: list_migrations
-- Migrations that were applied to the schema.
SELECT version, name, checksum FROM pointsman.migration ORDER BY version

-- name: insert_migration
-- Records that a migration was applied.
INSERT INTO pointsman.migration (version, name, checksum, at) VALUES ($1, $2, $3, now())
