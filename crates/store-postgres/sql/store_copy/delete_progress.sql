-- Deletes the progress of a finished copy into this store.
DELETE FROM pointsman.meta WHERE name = 'move' AND text = $1 RETURNING 1
