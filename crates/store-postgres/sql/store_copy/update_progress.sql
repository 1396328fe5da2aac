-- Updates the progress of a copy into this store. Returns no row if another copy has changed it.
UPDATE pointsman.meta SET text = $1 WHERE name = 'move' AND text = $2 RETURNING 1
