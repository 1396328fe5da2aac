-- The last event of an object.
SELECT last_event FROM pointsman.object WHERE tenant = $1 AND key = $2
