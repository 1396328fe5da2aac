-- The numbers of the last expired event and of the last expired archived task.
SELECT expired_event_number, expired_archive_number FROM pointsman.last_commit
