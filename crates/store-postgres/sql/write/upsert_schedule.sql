-- Starts a schedule, or restarts it with another expression.
INSERT INTO pointsman.schedule (name, expression, settled, named) VALUES ($1, $2, $3, $3)
ON CONFLICT (name) DO UPDATE
SET expression = excluded.expression, settled = excluded.settled, named = excluded.named, unmet = NULL
