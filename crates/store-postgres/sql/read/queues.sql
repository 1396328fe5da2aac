-- Queues of a handler ($1), or all, that have active tasks, and the creation time of the next ready task of each.
SELECT h.name, q.tenant, q.collection, q.ready, q.waiting, q.scheduled, q.running, q.halted, q.missing,
       CASE WHEN q.ready > 0 THEN
           (SELECT t.created FROM pointsman.task t WHERE t.queue = q.id AND t.phase = 3
            ORDER BY t.score DESC, t.rank, t.seq LIMIT 1)
       END
FROM pointsman.queue q
JOIN pointsman.handler h ON h.id = q.handler
WHERE ($1 IS NULL OR h.name = $1)
  AND q.ready + q.waiting + q.scheduled + q.running + q.halted + q.missing > 0
ORDER BY h.name COLLATE "C", q.tenant COLLATE "C", q.collection COLLATE "C"
