-- Partitions, and the rows that outlive theirs.

-- name: list_partitions
-- Partitions of the partitioned tables, with their upper bounds.
SELECT parent.relname::text, child.relname::text,
       (regexp_match(pg_get_expr(child.relpartbound, child.oid), 'TO \(''?(\d+)''?\)'))[1]::bigint
FROM pg_inherits i
JOIN pg_class parent ON parent.oid = i.inhparent
JOIN pg_class child ON child.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = parent.relnamespace
WHERE n.nspname = 'pointsman' AND parent.relname IN ('journal', 'history', 'attempt', 'log')
  AND child.relname <> parent.relname || '_retained'
ORDER BY 3

-- name: add_partition
-- Adds a partition to a table.
SELECT pointsman.add_partition($1, $2, $3)

-- name: read_expired_numbers
-- The numbers of the last expired event and of the last expired archived task.
SELECT expired_event_number, expired_archive_number FROM pointsman.last_commit

-- name: move_needed_events
-- Moves events that active tasks need to the partition of retained rows, before theirs is dropped.
UPDATE pointsman.journal j SET number = -j.number
WHERE j.number >= 0 AND j.number < $1
  AND (EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq >= j.first_task AND t.seq < j.first_task + j.tasks)
       OR EXISTS (SELECT 1 FROM pointsman.task t WHERE t.late AND t.event = j.id))

-- name: move_needed_attempts
-- Moves attempts of tasks that outlive their partition to the partition of retained rows.
UPDATE pointsman.attempt a SET partition_key = -1
WHERE a.partition_key >= 0 AND a.partition_key < $1
  AND (EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq = a.task)
       OR EXISTS (SELECT 1 FROM pointsman.history h WHERE h.seq = a.task AND h.n > $2))

-- name: move_needed_log_lines
-- Moves log lines of tasks that outlive their partition to the partition of retained rows.
UPDATE pointsman.log l SET partition_key = -1
WHERE l.partition_key >= 0 AND l.partition_key < $1
  AND (EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq = l.task)
       OR EXISTS (SELECT 1 FROM pointsman.history h WHERE h.seq = l.task AND h.n > $2))

-- name: delete_unneeded_events
-- Deletes retained events whose tasks have ended since.
DELETE FROM pointsman.journal_retained j
WHERE NOT EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq >= j.first_task AND t.seq < j.first_task + j.tasks)
  AND NOT EXISTS (SELECT 1 FROM pointsman.task t WHERE t.late AND t.event = j.id)

-- name: delete_unneeded_attempts
-- Deletes retained attempts of tasks that have expired since.
DELETE FROM pointsman.attempt_retained a
WHERE NOT EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq = a.task)
  AND NOT EXISTS (SELECT 1 FROM pointsman.history h WHERE h.seq = a.task AND h.n > $1)

-- name: delete_unneeded_log_lines
-- Deletes retained log lines of tasks that have expired since.
DELETE FROM pointsman.log_retained l
WHERE NOT EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq = l.task)
  AND NOT EXISTS (SELECT 1 FROM pointsman.history h WHERE h.seq = l.task AND h.n > $1)

-- name: list_bloated_tables
-- Frequently changed tables with many dead rows. They are not left to autovacuum alone, which runs only once a minute.
SELECT relname::text FROM pg_stat_user_tables
WHERE schemaname = 'pointsman' AND relname IN ('task', 'queue', 'commit_version', 'orders')
  AND n_dead_tup > greatest(2000, n_live_tup / 10)
