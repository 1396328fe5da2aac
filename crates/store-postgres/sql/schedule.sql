-- The progress of schedules.

-- name: read_schedule
-- A schedule.
SELECT expression, resolved_up_to, next_catch_up, last_registered_at, last_event FROM pointsman.schedule
WHERE name = $1

-- name: list_schedules
-- All schedules.
SELECT expression, resolved_up_to, next_catch_up, last_registered_at, last_event, name FROM pointsman.schedule

-- name: write_schedule
-- Inserts or replaces a schedule.
INSERT INTO pointsman.schedule (name, expression, resolved_up_to, next_catch_up, last_registered_at, last_event)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (name) DO UPDATE
SET expression = excluded.expression, resolved_up_to = excluded.resolved_up_to,
    next_catch_up = excluded.next_catch_up, last_registered_at = excluded.last_registered_at,
    last_event = excluded.last_event

-- name: delete_schedule
-- Deletes a schedule that no node has configured for a long time.
DELETE FROM pointsman.schedule WHERE name = $1
