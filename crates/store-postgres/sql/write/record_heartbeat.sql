-- A node lives, unless it was given up.
UPDATE pointsman.node SET heard = $2 WHERE id = $1 AND NOT gone
RETURNING id
