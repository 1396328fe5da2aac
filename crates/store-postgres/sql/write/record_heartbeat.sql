-- Records a heartbeat of a node, unless it was declared dead.
UPDATE pointsman.node SET last_heartbeat = $2 WHERE id = $1 AND NOT gone
RETURNING id
