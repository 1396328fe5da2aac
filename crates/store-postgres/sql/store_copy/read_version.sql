-- How many commits there were, and what numbers of events and ended tasks go on behind.
SELECT version, forgotten, journaled, archived, journal_to, history_to FROM pointsman.sequencer
