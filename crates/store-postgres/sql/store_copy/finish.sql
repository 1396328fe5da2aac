-- Inserts the last commit version of a copy, with the counters that depend on all rows.
WITH deleted AS (DELETE FROM pointsman.commit_version)
INSERT INTO pointsman.commit_version (version, registry_version, last_event, expired_up_to, last_task, last_fence,
                                      last_object, last_order, journaled_events, archived_tasks, last_archive_number,
                                      expired_archive_number, expired_event_number, journal_end, history_end, next_due)
SELECT version + 1, registry_version + 1, last_event, expired_up_to, last_task, last_fence, last_object,
       (SELECT coalesce(max(n), 0) FROM pointsman.orders), journaled_events, archived_tasks, last_archive_number,
       expired_archive_number, expired_event_number, journal_end,
       history_end, (SELECT min(due) FROM pointsman.task WHERE phase = 2)
FROM pointsman.last_commit
