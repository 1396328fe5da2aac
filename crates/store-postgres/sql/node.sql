-- Nodes.

-- name: list_live_nodes
-- Nodes that have neither left nor been declared dead.
SELECT id FROM pointsman.node WHERE NOT gone

-- name: list_nodes
-- Live nodes and the latest others, at most $1, each with its number of running tasks.
WITH leased AS (SELECT t.node, count(*) AS running FROM pointsman.task t WHERE t.phase = :locked GROUP BY t.node)
SELECT n.:node_columns, coalesce(leased.running, 0)
FROM pointsman.node n
LEFT JOIN leased ON leased.node = n.id
ORDER BY n.gone, n.id DESC
LIMIT $1

-- name: list_nodes_silent_since
-- Live nodes whose last heartbeat was before $1.
SELECT id FROM pointsman.node WHERE NOT gone AND last_heartbeat < $1

-- name: insert_node
-- Inserts a node that joins.
INSERT INTO pointsman.node (name, joined, last_heartbeat) VALUES ($1, $2, $2) RETURNING id

-- name: write_node_capabilities
-- Sets the capabilities of a node.
UPDATE pointsman.node SET capabilities = $2 WHERE id = $1

-- name: record_node_heartbeat
-- Records a heartbeat of a node, unless it was declared dead.
UPDATE pointsman.node SET last_heartbeat = $2 WHERE id = $1 AND NOT gone
RETURNING id

-- name: mark_node_gone
-- Records that a node has left, or is declared dead.
UPDATE pointsman.node SET gone = true WHERE id = $1

-- name: delete_expired_nodes
-- Deletes nodes that left long ago.
DELETE FROM pointsman.node
WHERE gone AND last_heartbeat < $1 AND id IN (SELECT id FROM pointsman.node ORDER BY id LIMIT $2)
RETURNING 1
