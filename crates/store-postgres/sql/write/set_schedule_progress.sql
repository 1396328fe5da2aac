-- Advances the progress of a schedule.
UPDATE pointsman.schedule
SET settled = greatest(settled, $2), unmet = coalesce(unmet, $3), last_event = coalesce($4, last_event)
WHERE name = $1
