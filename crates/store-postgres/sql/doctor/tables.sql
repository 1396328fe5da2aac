-- Frequently changed tables: live and dead rows, size, seconds since the last vacuum, and whether autovacuum is off.
SELECT s.relname::text, s.n_live_tup, s.n_dead_tup, pg_table_size(s.relid),
       extract(epoch FROM clock_timestamp() - greatest(s.last_autovacuum, s.last_vacuum))::float8,
       coalesce('autovacuum_enabled=false' = ANY(c.reloptions) OR 'autovacuum_enabled=off' = ANY(c.reloptions), false)
FROM pg_stat_user_tables s
JOIN pg_class c ON c.oid = s.relid
WHERE s.schemaname = 'pointsman' AND s.relname IN ('task', 'queue', 'commit_version', 'object', 'orders', 'outbox')
ORDER BY s.relname
