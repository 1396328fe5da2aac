-- Completes the version after all rows are copied: the counters that depend on all rows.
WITH deleted AS (DELETE FROM pointsman.version)
INSERT INTO pointsman.version (version, registry, last_event, forgotten, tasks, fences, objects, orders, journaled,
                               ended, archived, hidden, dropped, journal_to, history_to, next_due)
SELECT version + 1, registry + 1, last_event, forgotten, tasks, fences, objects,
       (SELECT coalesce(max(n), 0) FROM pointsman.orders), journaled, ended, archived, hidden, dropped, journal_to,
       history_to, (SELECT min(due) FROM pointsman.task WHERE phase = 2)
FROM pointsman.sequencer
