-- Inserts or replaces a schedule.
INSERT INTO pointsman.schedule (name, expression, resolved_up_to, next_catch_up, last_registered_at, last_event)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (name) DO UPDATE
SET expression = excluded.expression, resolved_up_to = excluded.resolved_up_to,
    next_catch_up = excluded.next_catch_up, last_registered_at = excluded.last_registered_at,
    last_event = excluded.last_event
