-- The last event of an object.
SELECT last FROM pointsman.object WHERE tenant = $1 AND key = $2
