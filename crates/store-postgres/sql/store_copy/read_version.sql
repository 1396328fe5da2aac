-- The commit version, the last numbers of events and archived tasks, and the ends of their last partitions.
SELECT version, expired_up_to, journaled_events, last_archive_number, journal_end, history_end
FROM pointsman.last_commit
