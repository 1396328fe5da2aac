-- Inserts the next commit version, with the last numbers of events and archived tasks and the ends of their partitions.
-- The rows of earlier commits are deleted, so that nodes drop all their caches.
WITH deleted AS (DELETE FROM pointsman.commit_version)
INSERT INTO pointsman.commit_version (version, registry_version, last_event, expired_up_to, last_task, last_fence,
                                      last_object, last_order, journaled_events, archived_tasks, last_archive_number,
                                      expired_archive_number, expired_event_number, journal_end, history_end, next_due)
SELECT version + 1, registry_version + 1, last_event, expired_up_to, last_task, last_fence, last_object, last_order, $1,
       archived_tasks, $2, expired_archive_number, expired_event_number, $3, $4, next_due
FROM pointsman.last_commit
