-- Records that a node has registered these schedules.
UPDATE pointsman.schedule SET last_registered_at = $2 WHERE name = ANY ($1)
