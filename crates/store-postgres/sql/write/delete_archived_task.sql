-- An ended task runs again.
DELETE FROM pointsman.history WHERE seq = $1
