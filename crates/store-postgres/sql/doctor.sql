-- Checks of `pointsman doctor`.

-- name: read_server_properties
-- Version, encoding and access mode of the server, and encryption of the connection. Through a pooler the latter is
-- that of the pooler's connection.
SELECT current_setting('server_version_num')::integer,
       current_setting('server_version'),
       current_setting('server_encoding'),
       pg_is_in_recovery(),
       current_setting('default_transaction_read_only')::boolean,
       coalesce((SELECT s.version FROM pg_stat_ssl s WHERE s.pid = pg_backend_pid() AND s.ssl), ''),
       coalesce(inet_client_addr() = inet_server_addr() OR inet_client_addr() <<= '127.0.0.0/8', true)

-- name: list_settings
-- These settings as they apply to this session, with their sources.
SELECT name, setting, source FROM pg_settings WHERE name = ANY($1)

-- name: list_roles_with_asynchronous_commit
-- Roles, or all roles in this database, whose commits do not wait for the disk. They commit their own emits in SQL.
SELECT coalesce(r.rolname, '')::text, s.setdatabase <> 0, setting
FROM pg_db_role_setting s
CROSS JOIN unnest(s.setconfig) AS settings (setting)
LEFT JOIN pg_roles r ON r.oid = s.setrole
WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
  AND setting IN ('synchronous_commit=off', 'synchronous_commit=local')
ORDER BY 1, 2

-- name: count_connections
-- The connection limit without the connections reserved for superusers; the connections of others, and of this role to
-- this database; and the limits of the role and of the database.
SELECT current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
           - coalesce(current_setting('reserved_connections', true)::bigint, 0),
       count(*) FILTER (WHERE NOT is_own),
       count(*) FILTER (WHERE is_own),
       (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user)::bigint,
       (SELECT datconnlimit FROM pg_database WHERE datname = current_database())::bigint
FROM (SELECT usename = current_user AND datname = current_database() AS is_own
      FROM pg_stat_activity
      WHERE usename IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend') a

-- name: list_long_transactions
-- Transactions of other sessions in this database that are open for longer than $1 seconds, the oldest first, and
-- whether those of all roles are visible.
SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
       a.pid, a.usename::text, a.application_name, a.state, extract(epoch FROM a.age)::float8,
       to_char(a.query_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')
FROM (SELECT) one
LEFT JOIN LATERAL (
    SELECT *, clock_timestamp() - xact_start AS age FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
      AND clock_timestamp() - xact_start > $1 * interval '1 second') a ON true
ORDER BY a.xact_start

-- name: list_prepared_transactions
-- Prepared transactions of this database that are older than $1 seconds, the oldest first.
SELECT gid, owner::text, extract(epoch FROM clock_timestamp() - prepared)::float8
FROM pg_prepared_xacts
WHERE database = current_database() AND clock_timestamp() - prepared > $1 * interval '1 second'
ORDER BY prepared

-- name: list_replication_slots
-- Replication slots: whether each is active, the status of its WAL, and how many bytes of WAL it retains.
SELECT slot_name::text, active, coalesce(wal_status, ''),
       coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                                     ELSE pg_current_wal_lsn() END, restart_lsn), 0)::bigint
FROM pg_replication_slots
WHERE restart_lsn IS NOT NULL OR wal_status = 'lost'
ORDER BY 4 DESC

-- name: list_table_statistics
-- Frequently changed tables: live and dead rows, size, seconds since the last vacuum, and whether autovacuum is off.
SELECT s.relname::text, s.n_live_tup, s.n_dead_tup, pg_table_size(s.relid),
       extract(epoch FROM clock_timestamp() - greatest(s.last_autovacuum, s.last_vacuum))::float8,
       coalesce('autovacuum_enabled=false' = ANY(c.reloptions) OR 'autovacuum_enabled=off' = ANY(c.reloptions), false)
FROM pg_stat_user_tables s
JOIN pg_class c ON c.oid = s.relid
WHERE s.schemaname = 'pointsman' AND s.relname IN ('task', 'queue', 'commit_version', 'object', 'orders', 'outbox')
ORDER BY s.relname

-- name: list_nodes_by_heartbeat
-- Nodes that have not left, each with the seconds since its last heartbeat, and whether it ran on another store that
-- was copied here: those have no heartbeat here.
SELECT name, (extract(epoch FROM clock_timestamp()) - last_heartbeat / 1000000.0)::float8, last_heartbeat = 0
FROM pointsman.node
WHERE NOT gone
ORDER BY last_heartbeat DESC

-- name: count_waiting_outbox_rows
-- Counts the waiting rows of the outbox, up to 100,001, and returns for how many seconds the first has waited.
SELECT count(*), coalesce(extract(epoch FROM clock_timestamp()) - min(o.at) / 1000000.0, 0)::float8
FROM (SELECT at FROM pointsman.outbox
      WHERE n > (SELECT CASE WHEN m.empty_up_to <= s.last_value THEN m.empty_up_to ELSE 0 END
                 FROM pointsman.outbox_progress m, pointsman.outbox_number s)
      ORDER BY n LIMIT 100001) o

-- name: count_refused_outbox_rows
-- Counts the refused rows of the outbox, and returns the reason of the last one.
SELECT count(*), coalesce((SELECT r.reason FROM pointsman.outbox_refused r ORDER BY r.n DESC LIMIT 1), '')
FROM pointsman.outbox_refused
