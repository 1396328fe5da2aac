-- Records a heartbeat of a node, unless it was declared dead.
UPDATE pointsman.node SET heard = $2 WHERE id = $1 AND NOT gone
RETURNING id
