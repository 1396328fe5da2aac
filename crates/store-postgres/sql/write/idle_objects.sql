-- The objects whose check is oldest, up to this event.
SELECT tenant, key, number, last_event, last_sent FROM pointsman.object WHERE checked <= $1 ORDER BY checked LIMIT $2
