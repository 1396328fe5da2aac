-- Inserts a node that joins.
INSERT INTO pointsman.node (name, joined, heard) VALUES ($1, $2, $2) RETURNING id
