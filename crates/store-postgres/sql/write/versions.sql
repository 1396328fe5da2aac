-- How far everything has come with the commit $1 and each one after it; with the last one alone if there is no such. And
-- what time it is there.
SELECT version, registry, changes, last_event, forgotten, tasks, fences, objects, orders,
       journaled, ended, archived, hidden, dropped, journal_to, history_to, next_due, touched,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, mark
FROM pointsman.version
WHERE version >= least($1, (SELECT version FROM pointsman.sequencer))
ORDER BY version
