-- At most $5 orders with their tasks, by key and tenant: after the order $1 of the tenant $8, with keys from $2 on and
-- before $3, of a tenant ($4) or of all. Each row has the sum of the value bytes up to it; beyond $7 bytes no row is
-- returned. Without $6 the values are not read.
SELECT o.n, o.key, o.node, o.tenant, o.value, o.priority, o.planned, o.created, o.started, o.suspended, o.task,
       coalesce(t.phase = 5, false), o.origin, o.depth, o.step_succeeded, o.suspended_by_task, o.took_on_error,
       t.phase, t.due, t.retries, h.name, f.handler, f.of, f.unfinished, f.error, o.bytes
FROM (
    SELECT c.*, sum(octet_length(c.value)) OVER (ORDER BY c.key, c.tenant ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (
        SELECT n, key, node, tenant, CASE WHEN $6 THEN value ELSE 'null' END AS value, priority, planned, created,
               started, suspended, task, origin, depth, step_succeeded, suspended_by_task, took_on_error
        FROM pointsman.orders
        WHERE (key, tenant) > ($1, $8) AND key >= $2 AND key < $3 AND ($4 IS NULL OR tenant = $4)
        ORDER BY key, tenant
        LIMIT $5
    ) c
) o
LEFT JOIN pointsman.task t ON t.seq = o.task
LEFT JOIN pointsman.queue q ON q.id = t.queue
LEFT JOIN pointsman.handler h ON h.id = q.handler
LEFT JOIN LATERAL (
    SELECT h.name AS handler, q.collection AS of, true AS unfinished, t.error
    FROM pointsman.task t
    JOIN pointsman.queue q ON q.id = t.queue
    JOIN pointsman.handler h ON h.id = q.handler
    WHERE o.suspended_by_task IS NOT NULL AND t.seq = o.suspended_by_task
    UNION ALL
    SELECT h.name, p.type, false, p.error
    FROM pointsman.history p
    JOIN pointsman.queue q ON q.id = p.queue
    JOIN pointsman.handler h ON h.id = q.handler
    WHERE o.suspended_by_task IS NOT NULL AND p.seq = o.suspended_by_task
      AND p.n > (SELECT expired_archive_number FROM pointsman.last_commit)
    LIMIT 1
) f ON true
WHERE o.bytes - octet_length(o.value) < $7
ORDER BY o.key, o.tenant
