-- The last event up to an id.
SELECT id FROM pointsman.journal WHERE id <= $1 ORDER BY id DESC LIMIT 1
