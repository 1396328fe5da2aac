-- How far everything has come, without the right to write.
SELECT version, registry, told_from, changes, last_event, forgotten, tasks, fences, objects, orders, journaled, ended,
       archived, hidden, dropped, journal_to, history_to, next_due
FROM pointsman.sequencer
