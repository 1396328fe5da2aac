-- The nodes that live and those that were heard of last, at most $1, each with how many tasks it holds.
WITH held AS (SELECT t.node, count(*) AS running FROM pointsman.task t WHERE t.phase = 5 GROUP BY t.node)
SELECT n.id, n.name, n.joined, n.heard, n.gone, n.abilities, coalesce(held.running, 0)
FROM pointsman.node n
LEFT JOIN held ON held.node = n.id
ORDER BY n.gone, n.id DESC
LIMIT $1
