-- The move to here has ended.
DELETE FROM pointsman.meta WHERE name = 'move' AND text = $1 RETURNING 1
