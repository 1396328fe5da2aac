-- Records that a node has these schedules configured now.
UPDATE pointsman.schedule SET last_registered_at = $2 WHERE name = ANY ($1)
