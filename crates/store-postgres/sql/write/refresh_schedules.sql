-- Somebody has these schedules now.
UPDATE pointsman.schedule SET named = $2 WHERE name = ANY ($1)
