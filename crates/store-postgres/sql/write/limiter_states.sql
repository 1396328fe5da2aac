-- How these handlers have been going.
SELECT id, pace FROM pointsman.handler WHERE id = ANY ($1)
