-- The progress of schedules.

-- name: read_schedule_progress
-- The progress of a schedule.
SELECT :schedule_columns FROM pointsman.schedule WHERE name = $1

-- name: list_schedule_progress
-- The progress of all schedules.
SELECT :schedule_columns FROM pointsman.schedule

-- name: write_schedule_progress
-- Inserts or replaces the progress of a schedule.
INSERT INTO pointsman.schedule (:schedule_columns) SELECT * FROM unnest(:schedule_arrays)
ON CONFLICT (name) DO UPDATE SET (:schedule_columns) = ROW (excluded.:schedule_columns)

-- name: delete_schedule_progress
-- Deletes the progress of a schedule that no node has registered for a long time.
DELETE FROM pointsman.schedule WHERE name = $1
