-- How far everything has come. Events and ended tasks count as they come; the slices of the journal begin with the one
-- of the first event that is not forgotten.
UPDATE pointsman.version
SET last_event = $1, forgotten = $2, journaled = $3, dropped = $3, tasks = $4, fences = $5, objects = $6, ended = $7,
    archived = 0, hidden = 0, journal_to = $8, history_to = 0
