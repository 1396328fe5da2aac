-- Records that a node has these schedules configured now.
UPDATE pointsman.schedule SET named = $2 WHERE name = ANY ($1)
