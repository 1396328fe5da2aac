-- Replication slots: whether each is active, the status of its WAL, and how many bytes of WAL it retains.
SELECT slot_name::text, active, coalesce(wal_status, ''),
       coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                                     ELSE pg_current_wal_lsn() END, restart_lsn), 0)::bigint
FROM pg_replication_slots
WHERE restart_lsn IS NOT NULL OR wal_status = 'lost'
ORDER BY 4 DESC
