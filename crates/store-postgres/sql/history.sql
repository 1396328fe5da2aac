-- Ended tasks.

-- name: read_archived_task
-- An archived task.
SELECT seq, queue, event, type, key, status, reason, sync, stage, priority, attempt, retries, crashes, late, has_lane,
       prev_sent, planned, created, started, finished, error, result
FROM pointsman.history WHERE seq = $1 AND n > $2

-- name: list_archived_tasks_by_seq
-- These archived tasks, with the names of their handlers and tenants.
SELECT p.seq, p.queue, p.event, p.type, p.key, p.status, p.reason, p.sync, p.stage, p.priority, p.attempt, p.retries,
       p.crashes, p.late, p.has_lane, p.prev_sent, p.planned, p.created, p.started, p.finished, p.error, p.result,
       h.name, q.tenant
FROM pointsman.history p
JOIN pointsman.queue q ON q.id = p.queue
JOIN pointsman.handler h ON h.id = q.handler
WHERE p.seq = ANY ($1) AND p.n > (SELECT expired_archive_number FROM pointsman.last_commit)

-- name: list_archived_tasks
-- At most $2 archived tasks before $1, the newest first.
SELECT p.seq, p.queue, p.event, p.type, p.key, p.status, p.reason, p.sync, p.stage, p.priority, p.attempt, p.retries,
       p.crashes, p.late, p.has_lane, p.prev_sent, p.planned, p.created, p.started, p.finished, p.error, p.result,
       h.name, q.tenant
FROM (
    SELECT * FROM pointsman.history
    WHERE seq < $1 AND n > (SELECT expired_archive_number FROM pointsman.last_commit)
    ORDER BY seq DESC
    LIMIT $2
) p
JOIN pointsman.queue q ON q.id = p.queue
JOIN pointsman.handler h ON h.id = q.handler
ORDER BY p.seq DESC

-- name: list_failed_tasks
-- At most $2 failed tasks before $1, the newest first.
SELECT p.seq, p.queue, p.event, p.type, p.key, p.status, p.reason, p.sync, p.stage, p.priority, p.attempt, p.retries,
       p.crashes, p.late, p.has_lane, p.prev_sent, p.planned, p.created, p.started, p.finished, p.error, p.result,
       h.name, q.tenant
FROM (
    SELECT * FROM pointsman.history
    WHERE seq < $1 AND n > (SELECT expired_archive_number FROM pointsman.last_commit) AND status = :status_error
    ORDER BY seq DESC
    LIMIT $2
) p
JOIN pointsman.queue q ON q.id = p.queue
JOIN pointsman.handler h ON h.id = q.handler
ORDER BY p.seq DESC

-- name: list_source_runs
-- At most $2 archived tasks of sources before $1, the newest first.
SELECT p.seq, p.queue, p.event, p.type, p.key, p.status, p.reason, p.sync, p.stage, p.priority, p.attempt, p.retries,
       p.crashes, p.late, p.has_lane, p.prev_sent, p.planned, p.created, p.started, p.finished, p.error, p.result,
       h.name, q.tenant
FROM (
    SELECT * FROM pointsman.history
    WHERE seq < $1 AND n > (SELECT expired_archive_number FROM pointsman.last_commit) AND event IS NULL AND key IS NULL
    ORDER BY seq DESC
    LIMIT $2
) p
JOIN pointsman.queue q ON q.id = p.queue
JOIN pointsman.handler h ON h.id = q.handler
ORDER BY p.seq DESC

-- name: list_archive_numbers_by_seq
-- The archive numbers of these tasks.
SELECT seq, n FROM pointsman.history WHERE seq = ANY ($1)

-- name: list_archive_numbers_with_expiry
-- The numbers of the archived tasks from $1 to $2, and whether each ended before $3.
SELECT n, finished < $3 FROM pointsman.history WHERE n > $1 AND n <= $2 ORDER BY n

-- name: insert_archived_tasks
-- Inserts archived tasks.
INSERT INTO pointsman.history
       (n, seq, queue, event, type, key, status, reason, sync, stage, priority, attempt, retries, crashes, late,
        has_lane, prev_sent, planned, created, started, finished, error, result)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::smallint[],
                     $8::smallint[], $9::boolean[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[],
                     $14::bigint[], $15::boolean[], $16::boolean[], $17::bigint[], $18::bigint[], $19::bigint[],
                     $20::bigint[], $21::bigint[], $22::text[], $23::text[])

-- name: update_archive_numbers
-- Gives new numbers to archived tasks that stay although later ones expire.
UPDATE pointsman.history h SET n = u.new
FROM unnest($1::bigint[], $2::bigint[]) AS u (old, new) WHERE h.n = ANY (ARRAY[u.old])

-- name: delete_archived_task
-- Deletes an archived task that runs again.
DELETE FROM pointsman.history WHERE seq = $1
