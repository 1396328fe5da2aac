-- The objects that were checked first, up to this event.
SELECT tenant, key, number, last, sent FROM pointsman.object WHERE checked <= $1 ORDER BY checked LIMIT $2
