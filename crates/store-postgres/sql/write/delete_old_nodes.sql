-- Deletes nodes that left long ago.
DELETE FROM pointsman.node
WHERE gone AND last_heartbeat < $1 AND id IN (SELECT id FROM pointsman.node ORDER BY id LIMIT $2)
RETURNING 1
