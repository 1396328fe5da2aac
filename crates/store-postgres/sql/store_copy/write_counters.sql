-- Writes the counters. Events and archived tasks are counted as they are copied; the first partition of the journal is
-- the one of the first unexpired event.
UPDATE pointsman.version
SET last_event = $1, forgotten = $2, journaled = $3, dropped = $3, tasks = $4, fences = $5, objects = $6, ended = $7,
    archived = 0, hidden = 0, journal_to = $8, history_to = 0
