-- Takes the right to write, and tells what numbers of events and ended tasks go on behind.
SELECT forgotten, journaled, archived, journal_to, history_to FROM pointsman.sequencer FOR UPDATE
