-- How far everything has come with the commit $1 and each one after it; with the last one alone if there is no such.
SELECT version, registry, changes, last_event, forgotten, tasks, fences, objects, orders,
       journaled, ended, archived, hidden, dropped, journal_to, history_to, next_due, touched,
       mark
FROM pointsman.version
WHERE version >= least($1, (SELECT version FROM pointsman.sequencer))
ORDER BY version
