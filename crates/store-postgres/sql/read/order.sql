-- An order with its task, and with the task whose failure suspended it.
SELECT o.n, o.key, o.node, o.tenant, o.value, o.priority, o.planned, o.created, o.started, o.suspended, o.task,
       coalesce(t.phase = 5, false), o.origin, o.depth, o.step_succeeded, o.suspended_by_task, o.took_on_error,
       t.phase, t.due, t.retries, h.name, f.handler, f.of, f.unfinished, f.error
FROM pointsman.orders o
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
WHERE o.key = $1 AND o.tenant = $2
