-- The commit version, and the last numbers of events and archived tasks.
SELECT version, expired_up_to, journaled_events, last_archive_number, journal_end, history_end FROM pointsman.sequencer
