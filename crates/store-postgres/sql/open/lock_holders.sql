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
