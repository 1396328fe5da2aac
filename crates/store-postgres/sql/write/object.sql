-- An object by its key.
SELECT number, last_event, last_sent FROM pointsman.object WHERE tenant = $1 AND key = $2
