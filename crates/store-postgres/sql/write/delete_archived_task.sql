-- Deletes an archived task that runs again.
DELETE FROM pointsman.history WHERE seq = $1
