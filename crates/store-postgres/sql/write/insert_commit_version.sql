-- Records the counters and the changes of a commit; the last statement before it. Also deletes the row of one old
-- commit, by its number, so that no deleted rows are scanned.
WITH deleted AS (DELETE FROM pointsman.commit_version WHERE version = $1 - 64)
INSERT INTO pointsman.commit_version (version, registry_version, invalidations, last_event, expired_up_to, last_task,
                                      last_fence, last_object, last_order, journaled_events, archived_tasks,
                                      last_archive_number, expired_archive_number, expired_event_number, journal_end,
                                      history_end, next_due, object_invalidations, nonce)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
