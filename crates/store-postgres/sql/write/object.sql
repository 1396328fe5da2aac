-- An object by its key.
SELECT number, last, sent FROM pointsman.object WHERE tenant = $1 AND key = $2
