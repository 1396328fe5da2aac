-- The server, the database and the role.

-- name: read_version
-- Version and encoding of the server.
SELECT current_setting('server_version_num')::integer, current_setting('server_encoding')

-- name: read_clock
-- The server's time, in microseconds since 1970.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- name: read_backend_pid
-- The process id of the server's backend.
SELECT pg_backend_pid()

-- name: read_database_identity
-- Identifies a running server and database.
SELECT concat_ws(' ', pg_postmaster_start_time(), oid) FROM pg_database WHERE datname = current_database()

-- name: read_privileges
-- Privileges of the role: whether it may create the schema; and, if the schema exists, its owner, whether the role may
-- use it and create tables in it, how many of its tables and functions the role does not own, and whether membership in
-- the owner role would suffice: the owner is no superuser, and owns all the rest. Considers only objects with the names
-- $1, and their partitions.
WITH schema AS (SELECT oid, nspowner FROM pg_namespace WHERE nspname = 'pointsman'),
     foreign_owners AS (
         SELECT owner FROM (
             SELECT relowner FROM pg_class
             WHERE relnamespace = (SELECT oid FROM schema) AND relkind IN ('r', 'p', 'v', 'S')
               AND (relispartition OR relname = ANY ($1))
             UNION ALL
             SELECT proowner FROM pg_proc WHERE pronamespace = (SELECT oid FROM schema) AND proname = ANY ($1)
         ) objects (owner)
         WHERE NOT pg_has_role(owner, 'USAGE'))
SELECT current_user::text,
       has_database_privilege(current_database(), 'CREATE'),
       pg_get_userbyid(s.nspowner)::text,
       coalesce(has_schema_privilege(s.oid, 'USAGE') AND has_schema_privilege(s.oid, 'CREATE'), false),
       (SELECT count(*) FROM foreign_owners),
       NOT coalesce((SELECT rolsuper FROM pg_roles WHERE oid = s.nspowner), true)
           AND NOT EXISTS (SELECT FROM foreign_owners WHERE owner <> s.nspowner)
FROM (SELECT) me
LEFT JOIN schema s ON true
