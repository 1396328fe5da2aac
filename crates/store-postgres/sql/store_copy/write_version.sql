-- Advances the version with the last numbers of events and archived tasks. All caches are dropped.
WITH deleted AS (DELETE FROM pointsman.version)
INSERT INTO pointsman.version (version, registry, last_event, forgotten, tasks, fences, objects, orders, journaled,
                               ended, archived, hidden, dropped, journal_to, history_to, next_due)
SELECT version + 1, registry + 1, last_event, forgotten, tasks, fences, objects, orders, $1, ended, $2, hidden, dropped,
       $3, $4, next_due
FROM pointsman.sequencer
