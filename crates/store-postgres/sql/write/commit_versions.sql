-- The counters and the changes of commit $1 and of each later one; only those of the last commit if $1 does not exist.
SELECT version, registry_version, invalidations, last_event, expired_up_to, last_task, last_fence, last_object,
       last_order, journaled_events, archived_tasks, last_archive_number, expired_archive_number, expired_event_number,
       journal_end, history_end, next_due, object_invalidations, nonce
FROM pointsman.commit_version
WHERE version >= least($1, (SELECT version FROM pointsman.last_commit))
ORDER BY version
