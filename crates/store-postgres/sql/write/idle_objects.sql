-- Objects that retention last checked at or before the time of event $1, the longest unchecked first, at most $2.
SELECT tenant, key, number, last_event, last_sent FROM pointsman.object WHERE checked <= $1 ORDER BY checked LIMIT $2
