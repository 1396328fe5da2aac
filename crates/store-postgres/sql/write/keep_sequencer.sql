-- Writes how far everything has come, and what this commit changed. The last statement before the commit.
UPDATE pointsman.sequencer
SET version = $1, registry = $2, told_from = $3, changes = $4, last_event = $5, forgotten = $6, tasks = $7, fences = $8,
    objects = $9, orders = $10, journaled = $11, ended = $12, archived = $13, hidden = $14, dropped = $15,
    journal_to = $16, history_to = $17, next_due = $18
