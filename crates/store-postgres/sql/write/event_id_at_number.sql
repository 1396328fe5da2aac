-- The id of the last event in the sparse index up to a number.
SELECT id FROM pointsman.mark WHERE number <= $1 ORDER BY number DESC LIMIT 1
