-- The fire ledger.

-- name: read_fire
-- The ledger row of a planned time.
SELECT :fire_columns FROM pointsman.fire WHERE schedule = $1 AND planned = $2

-- name: list_fires
-- At most $3 rows of a schedule's ledger, planned before $2, the latest first.
SELECT :fire_columns FROM pointsman.fire
WHERE schedule = $1 AND planned < $2
ORDER BY planned DESC
LIMIT $3

-- name: find_planned_time_with_outcome
-- The first planned time of schedule $1 after $2 that has outcome $3.
SELECT planned FROM pointsman.fire WHERE schedule = $1 AND planned > $2 AND outcome = $3
ORDER BY schedule, planned LIMIT 1

-- name: write_fire
-- Writes the ledger row of a planned time.
INSERT INTO pointsman.fire (:fire_columns) SELECT * FROM unnest(:fire_arrays)
ON CONFLICT (schedule, planned) DO UPDATE SET (:fire_columns) = ROW (excluded.:fire_columns)

-- name: delete_expired_fires
-- Deletes old rows of the fire ledger.
DELETE FROM pointsman.fire
WHERE (schedule, planned) IN (SELECT schedule, planned FROM pointsman.fire WHERE at < $1 ORDER BY at LIMIT $2)
RETURNING 1
