-- The write lock, and the counters and changes of each commit.

-- name: acquire_write_lock
-- Takes the write lock.
SELECT FROM pointsman.write_lock FOR UPDATE

-- name: list_commit_versions
-- The counters and the changes of commit $1 and of each later one; only those of the last commit if $1 does not exist.
SELECT version, registry_version, invalidations, last_event, expired_up_to, last_task, last_fence, last_object,
       last_order, journaled_events, archived_tasks, last_archive_number, expired_archive_number, expired_event_number,
       journal_end, history_end, next_due, object_invalidations, nonce
FROM pointsman.commit_version
WHERE version >= least($1, (SELECT version FROM pointsman.last_commit))
ORDER BY version

-- name: insert_commit_version
-- Records the counters and the changes of a commit; the last statement before it. Also deletes the row of one old
-- commit, by its number, so that no deleted rows are scanned.
WITH deleted AS (DELETE FROM pointsman.commit_version WHERE version = $1 - 64)
INSERT INTO pointsman.commit_version (version, registry_version, invalidations, last_event, expired_up_to, last_task,
                                      last_fence, last_object, last_order, journaled_events, archived_tasks,
                                      last_archive_number, expired_archive_number, expired_event_number, journal_end,
                                      history_end, next_due, object_invalidations, nonce)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
