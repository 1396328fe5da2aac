-- Nodes that have neither left nor been declared dead.
SELECT id FROM pointsman.node WHERE NOT gone
