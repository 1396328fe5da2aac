-- Deletes old rows of the fire ledger.
DELETE FROM pointsman.fire
WHERE (schedule, planned) IN (SELECT schedule, planned FROM pointsman.fire WHERE at < $1 ORDER BY at LIMIT $2)
RETURNING 1
