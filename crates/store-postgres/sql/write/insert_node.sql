-- Inserts a node that joins.
INSERT INTO pointsman.node (name, joined, last_heartbeat) VALUES ($1, $2, $2) RETURNING id
