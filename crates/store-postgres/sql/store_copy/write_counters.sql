-- Writes the counters. Events and archived tasks are counted as they are copied; the first partition of the journal is
-- the one of the first unexpired event.
UPDATE pointsman.commit_version
SET last_event = $1, expired_up_to = $2, journaled_events = $3, expired_event_number = $3, last_task = $4,
    last_fence = $5, last_object = $6, archived_tasks = $7, last_archive_number = 0, expired_archive_number = 0,
    journal_end = $8, history_end = 0
