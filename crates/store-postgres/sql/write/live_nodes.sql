-- Nodes that have joined and have neither left nor been given up.
SELECT id FROM pointsman.node WHERE NOT gone
