-- The commit version, and the last numbers of events and archived tasks.
SELECT version, forgotten, journaled, archived, journal_to, history_to FROM pointsman.sequencer
