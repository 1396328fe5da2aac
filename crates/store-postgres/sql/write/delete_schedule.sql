-- Deletes a schedule that no node has configured for a long time.
DELETE FROM pointsman.schedule WHERE name = $1
