-- A move to here has come further. No row: it is not where it was left.
UPDATE pointsman.meta SET text = $1 WHERE name = 'move' AND text = $2 RETURNING 1
