-- Writes the ledger row of a planned time.
INSERT INTO pointsman.fire (schedule, planned, at, outcome, event, task) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (schedule, planned) DO UPDATE
SET at = excluded.at, outcome = excluded.outcome, event = excluded.event, task = excluded.task
