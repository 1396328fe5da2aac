-- Takes the right to write, and tells how far everything has come.
SELECT version, registry, told_from, changes, last_event, forgotten, tasks, fences, objects, orders, journaled, ended,
       archived, hidden, dropped, journal_to, history_to, next_due
FROM pointsman.sequencer
FOR UPDATE
