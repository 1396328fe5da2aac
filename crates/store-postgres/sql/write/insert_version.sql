-- Records the counters and changes of this commit. The last statement before the commit. One old version is deleted by
-- its number, so that deleted rows are not scanned.
WITH deleted AS (DELETE FROM pointsman.version WHERE version = $1 - 64)
INSERT INTO pointsman.version (version, registry, changes, last_event, forgotten, tasks, fences, objects, orders,
                               journaled, ended, archived, hidden, dropped, journal_to, history_to, next_due, touched,
                               mark)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
