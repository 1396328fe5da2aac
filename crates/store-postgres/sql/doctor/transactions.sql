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
