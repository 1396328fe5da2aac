-- The progress of schedules.

-- name: read_schedule
-- A schedule.
SELECT :schedule_columns FROM pointsman.schedule WHERE name = $1

-- name: list_schedules
-- All schedules.
SELECT :schedule_columns FROM pointsman.schedule

-- name: write_schedule
-- Inserts or replaces a schedule.
INSERT INTO pointsman.schedule (:schedule_columns) SELECT * FROM unnest(:schedule_arrays)
ON CONFLICT (name) DO UPDATE SET (:schedule_columns) = ROW (excluded.:schedule_columns)

-- name: delete_schedule
-- Deletes a schedule that no node has configured for a long time.
DELETE FROM pointsman.schedule WHERE name = $1
