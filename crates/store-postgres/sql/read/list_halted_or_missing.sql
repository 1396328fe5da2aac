-- At most $2 halted or missing tasks before $1, the newest first.
SELECT t.seq, t.queue, t.event, t.order_number, t.phase, t.lane, t.lane_position, t.concurrency_group, t.key_bucket,
       t.sync, t.stage, t.priority, t.score, t.rank, t.due, t.attempt, t.retries, t.crashes, t.late, t.node, t.fence,
       t.leased_until, t.started, t.prev_sent, t.planned, t.created, t.reason, t.error,
       h.name, q.tenant, q.collection, j.type, j.key, (SELECT o.key FROM pointsman.orders o WHERE o.n = t.order_number),
       CASE WHEN t.phase >= 6 THEN (SELECT max(a.ended) FROM pointsman.attempt a WHERE a.task = t.seq) END
FROM (SELECT * FROM pointsman.task WHERE seq < $1 AND phase >= 6 ORDER BY seq DESC LIMIT $2) t
JOIN pointsman.queue q ON q.id = t.queue
JOIN pointsman.handler h ON h.id = q.handler
LEFT JOIN LATERAL (SELECT j.type, j.key FROM pointsman.journal j WHERE j.id = t.event LIMIT 1) j ON true
ORDER BY t.seq DESC
