-- Removes tasks that have ended.
DELETE FROM pointsman.task WHERE seq = ANY ($1)
