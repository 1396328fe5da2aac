-- Ended tasks.

-- name: read_archived_task
-- An archived task.
SELECT :archived_task_columns FROM pointsman.history WHERE seq = $1 AND n > $2

-- name: list_archived_tasks_by_seq
-- These archived tasks, with the names of their handlers and tenants.
SELECT p.:archived_task_columns, h.name, q.tenant
FROM pointsman.history p
JOIN pointsman.queue q ON q.id = p.queue
JOIN pointsman.handler h ON h.id = q.handler
WHERE p.seq = ANY ($1) AND p.n > (SELECT expired_archive_number FROM pointsman.last_commit)

-- name: list_archived_tasks
-- At most $2 archived tasks before $1, the newest first.
SELECT p.:archived_task_columns, h.name, q.tenant
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
SELECT p.:archived_task_columns, h.name, q.tenant
FROM (
    SELECT * FROM pointsman.history
    WHERE seq < $1 AND n > (SELECT expired_archive_number FROM pointsman.last_commit) AND status = :status_error
    ORDER BY seq DESC
    LIMIT $2
) p
JOIN pointsman.queue q ON q.id = p.queue
JOIN pointsman.handler h ON h.id = q.handler
ORDER BY p.seq DESC

-- name: list_archived_collection_runs
-- At most $2 archived tasks of sources before $1, the newest first.
SELECT p.:archived_task_columns, h.name, q.tenant
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
INSERT INTO pointsman.history (n, :archived_task_columns) SELECT * FROM unnest($1::bigint[], :archived_task_arrays)

-- name: update_archive_numbers
-- Gives new numbers to archived tasks that stay although later ones expire.
UPDATE pointsman.history h SET n = u.new
FROM unnest($1::bigint[], $2::bigint[]) AS u (old, new) WHERE h.n = ANY (ARRAY[u.old])

-- name: delete_archived_task
-- Deletes an archived task that runs again.
DELETE FROM pointsman.history WHERE seq = $1
