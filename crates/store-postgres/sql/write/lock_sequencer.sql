-- Takes the right to write, and tells how far everything has come, and by which number it can be asked later whether this
-- transaction was committed.
SELECT version, registry, told_from, changes, last_event, forgotten, tasks, fences, objects, orders, journaled, ended,
       archived, hidden, dropped, journal_to, history_to, next_due, pg_current_xact_id()::text
FROM pointsman.sequencer
FOR UPDATE
