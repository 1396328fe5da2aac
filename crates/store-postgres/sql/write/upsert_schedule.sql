-- Starts a schedule, or restarts it with another expression.
INSERT INTO pointsman.schedule (name, expression, resolved_up_to, last_registered_at) VALUES ($1, $2, $3, $3)
ON CONFLICT (name) DO UPDATE
SET expression = excluded.expression, resolved_up_to = excluded.resolved_up_to,
    last_registered_at = excluded.last_registered_at, next_catch_up = NULL
