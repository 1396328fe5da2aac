-- Live nodes and the latest others, at most $1, each with its number of running tasks.
WITH leased AS (SELECT t.node, count(*) AS running FROM pointsman.task t WHERE t.phase = 5 GROUP BY t.node)
SELECT n.id, n.name, n.joined, n.last_heartbeat, n.gone, n.capabilities, coalesce(leased.running, 0)
FROM pointsman.node n
LEFT JOIN leased ON leased.node = n.id
ORDER BY n.gone, n.id DESC
LIMIT $1
