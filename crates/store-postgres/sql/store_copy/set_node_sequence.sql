-- Sets the sequence of node ids after all assigned ones.
SELECT setval('pointsman.node_id_seq', greatest($1, 1), $1 > 0)
