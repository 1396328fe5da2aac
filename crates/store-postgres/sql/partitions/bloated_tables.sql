-- Frequently changed tables with many dead rows. They are not left to autovacuum alone, which runs only once a minute.
SELECT relname::text FROM pg_stat_user_tables
WHERE schemaname = 'pointsman' AND relname IN ('task', 'queue', 'commit_version', 'orders')
  AND n_dead_tup > greatest(2000, n_live_tup / 10)
