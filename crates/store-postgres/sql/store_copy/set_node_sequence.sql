-- Nodes are numbered behind those that ever were.
SELECT setval('pointsman.node_id_seq', greatest($1, 1), $1 > 0)
