-- The first non-empty lanes of an object, at most $4 of the $3 that it can have: for each lane its first task with
-- columns of related tables, and the number of its tasks, counted up to $5. The index finds each lane from the one
-- before it, however many tasks that one has.
WITH RECURSIVE head AS (
    SELECT 1 AS nth, t.lane, t.seq, (o.number + 1) * $3 AS until
    FROM pointsman.object o
    CROSS JOIN LATERAL (
        SELECT lane, seq FROM pointsman.task
        WHERE lane >= o.number * $3 AND lane < (o.number + 1) * $3 AND lane_position IS NOT NULL
        ORDER BY lane, lane_position LIMIT 1
    ) t
    WHERE o.tenant = $1 AND o.key = $2
    UNION ALL
    SELECT h.nth + 1, t.lane, t.seq, h.until
    FROM head h
    CROSS JOIN LATERAL (
        SELECT lane, seq FROM pointsman.task
        WHERE lane > h.lane AND lane < h.until AND lane_position IS NOT NULL
        ORDER BY lane, lane_position LIMIT 1
    ) t
    WHERE h.nth < $4
)
SELECT t.seq, t.queue, t.event, t.order_number, t.phase, t.lane, t.lane_position, t.concurrency_group, t.key_bucket,
       t.sync, t.stage, t.priority, t.score, t.rank, t.due, t.attempt, t.retries, t.crashes, t.late, t.node, t.fence,
       t.leased_until, t.started, t.prev_sent, t.planned, t.created, t.reason, t.error,
       n.name, q.tenant, q.collection, j.type, j.key, (SELECT o.key FROM pointsman.orders o WHERE o.n = t.order_number),
       CASE WHEN t.phase >= 6 THEN (SELECT max(a.ended) FROM pointsman.attempt a WHERE a.task = t.seq) END,
       (SELECT count(*) FROM (
            SELECT FROM pointsman.task b WHERE b.lane = h.lane AND b.lane_position IS NOT NULL LIMIT $5
        ) b)
FROM head h
JOIN pointsman.task t ON t.seq = h.seq
JOIN pointsman.queue q ON q.id = t.queue
JOIN pointsman.handler n ON n.id = q.handler
LEFT JOIN LATERAL (SELECT j.type, j.key FROM pointsman.journal j WHERE j.id = t.event LIMIT 1) j ON true
ORDER BY h.nth
