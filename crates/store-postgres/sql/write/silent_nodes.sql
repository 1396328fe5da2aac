-- Live nodes that were last heard of before then.
SELECT id FROM pointsman.node WHERE NOT gone AND heard < $1
