-- A copy between stores.

-- name: insert_copy_progress
-- Inserts the first progress of a copy into this store. Returns no row if another copy has begun.
INSERT INTO pointsman.meta (name, text) VALUES ('move', $1) ON CONFLICT (name) DO NOTHING RETURNING 1

-- name: update_copy_progress
-- Updates the progress of a copy into this store. Returns no row if another copy has changed it.
UPDATE pointsman.meta SET text = $1 WHERE name = 'move' AND text = $2 RETURNING 1

-- name: delete_copy_progress
-- Deletes the progress of a finished copy into this store.
DELETE FROM pointsman.meta WHERE name = 'move' AND text = $1 RETURNING 1

-- name: read_commit_version_and_outbox_empty
-- The commit version, and whether the outbox is empty.
SELECT version, NOT EXISTS (SELECT FROM pointsman.outbox) FROM pointsman.last_commit

-- name: count_outbox_rows
-- Counts the events in the outbox.
SELECT count(*) FROM pointsman.outbox

-- name: list_live_nodes
-- Nodes with a heartbeat within the last minute, by the server's clock.
SELECT name FROM pointsman.node
WHERE NOT gone AND last_heartbeat > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 60000000
ORDER BY id

-- name: read_counters
-- The counters of a store, in the columns that they have in all stores. The fifth is the number of expired events.
SELECT (SELECT text::bigint FROM pointsman.meta WHERE name = 'task_id_namespace'),
       (SELECT text::bigint FROM pointsman.meta WHERE name = 'salt'),
       greatest(coalesce((SELECT max(id) FROM pointsman.journal), 0), s.expired_up_to),
       s.expired_up_to,
       s.journaled_events - (SELECT count(*) FROM pointsman.journal j WHERE j.id > s.expired_up_to),
       s.journaled_events, s.last_task, s.last_fence, s.last_object, s.archived_tasks,
       (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM pointsman.node_id_seq)
FROM pointsman.last_commit s

-- name: read_commit_counters
-- The commit version, the last numbers of events and archived tasks, and the ends of their last partitions.
SELECT version, expired_up_to, journaled_events, last_archive_number, journal_end, history_end
FROM pointsman.last_commit

-- name: delete_tenants
-- Deletes all tenants.
DELETE FROM pointsman.tenant

-- name: insert_tenants
-- Inserts tenants with their uuids.
INSERT INTO pointsman.tenant (name, canvas_id) SELECT DISTINCT * FROM unnest($1::text[], $2::uuid[])
ON CONFLICT (name) DO NOTHING

-- name: write_counters
-- Writes the counters. Events and archived tasks are counted as they are copied; the first partition of the journal is
-- the one of the first unexpired event.
UPDATE pointsman.commit_version
SET last_event = $1, expired_up_to = $2, journaled_events = $3, expired_event_number = $3, last_task = $4,
    last_fence = $5, last_object = $6, archived_tasks = $7, last_archive_number = 0, expired_archive_number = 0,
    journal_end = $8, history_end = 0

-- name: insert_commit_version
-- Inserts the next commit version, with the last numbers of events and archived tasks and the ends of their partitions.
-- The rows of earlier commits are deleted, so that nodes drop all their caches.
WITH deleted AS (DELETE FROM pointsman.commit_version)
INSERT INTO pointsman.commit_version (version, registry_version, last_event, expired_up_to, last_task, last_fence,
                                      last_object, last_order, journaled_events, archived_tasks, last_archive_number,
                                      expired_archive_number, expired_event_number, journal_end, history_end, next_due)
SELECT version + 1, registry_version + 1, last_event, expired_up_to, last_task, last_fence, last_object, last_order, $1,
       archived_tasks, $2, expired_archive_number, expired_event_number, $3, $4, next_due
FROM pointsman.last_commit

-- name: update_node_sequence
-- Sets the sequence of node ids after all assigned ones.
SELECT setval('pointsman.node_id_seq', greatest($1, 1), $1 > 0)

-- name: update_audit_and_outbox_sequences
-- Sets the sequences of audit entries and of the outbox after all existing and assigned numbers. A large number that
-- was inserted manually must not exhaust the sequence.
SELECT setval('pointsman.audit_entry_n_seq', greatest(e.n, 1), e.n > 0),
       setval('pointsman.outbox_number', greatest(o.n, 1), o.n > 0)
FROM (SELECT greatest((SELECT max(n) FROM pointsman.audit_entry),
                      (SELECT last_value FROM pointsman.audit_entry_n_seq WHERE is_called), 0) AS n) e,
     (SELECT greatest((SELECT max(n) FROM pointsman.outbox WHERE n < 140737488355328),
                      (SELECT max(n) FROM pointsman.receipt WHERE n < 140737488355328),
                      (SELECT max(n) FROM pointsman.outbox_refused WHERE n < 140737488355328),
                      (SELECT last_value FROM pointsman.outbox_number WHERE is_called), 0) AS n) o

-- name: insert_final_commit_version
-- Inserts the last commit version of a copy, with the counters that depend on all rows.
WITH deleted AS (DELETE FROM pointsman.commit_version)
INSERT INTO pointsman.commit_version (version, registry_version, last_event, expired_up_to, last_task, last_fence,
                                      last_object, last_order, journaled_events, archived_tasks, last_archive_number,
                                      expired_archive_number, expired_event_number, journal_end, history_end, next_due)
SELECT version + 1, registry_version + 1, last_event, expired_up_to, last_task, last_fence, last_object,
       (SELECT coalesce(max(n), 0) FROM pointsman.orders), journaled_events, archived_tasks, last_archive_number,
       expired_archive_number, expired_event_number, journal_end,
       history_end, (SELECT min(due) FROM pointsman.task WHERE phase = :delayed)
FROM pointsman.last_commit
