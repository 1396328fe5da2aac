-- Counts the orders at each node of each chain.
SELECT chain, node, count(*)
FROM pointsman.orders
GROUP BY chain, node
ORDER BY chain COLLATE "C", node COLLATE "C"
