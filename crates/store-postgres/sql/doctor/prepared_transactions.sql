-- Prepared transactions of this database that are older than $1 seconds, the oldest first.
SELECT gid, owner::text, extract(epoch FROM clock_timestamp() - prepared)::float8
FROM pg_prepared_xacts
WHERE database = current_database() AND clock_timestamp() - prepared > $1 * interval '1 second'
ORDER BY prepared
