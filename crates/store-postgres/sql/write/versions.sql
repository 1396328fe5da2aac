-- The counters as of commit $1 and of each later one; those of the last commit alone if $1 does not exist.
SELECT version, registry, changes, last_event, forgotten, tasks, fences, objects, orders,
       journaled, ended, archived, hidden, dropped, journal_to, history_to, next_due, touched,
       mark
FROM pointsman.version
WHERE version >= least($1, (SELECT version FROM pointsman.sequencer))
ORDER BY version
