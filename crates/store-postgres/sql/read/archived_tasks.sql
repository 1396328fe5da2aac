-- These archived tasks, with the names of their handlers and tenants.
SELECT p.seq, p.queue, p.event, p.type, p.key, p.status, p.reason, p.sync, p.stage, p.priority, p.attempt, p.retries,
       p.crashes, p.late, p.has_lane, p.prev_sent, p.planned, p.created, p.started, p.finished, p.error, p.result,
       h.name, q.tenant
FROM pointsman.history p
JOIN pointsman.queue q ON q.id = p.queue
JOIN pointsman.handler h ON h.id = q.handler
WHERE p.seq = ANY ($1) AND p.n > (SELECT expired_archive_number FROM pointsman.last_commit)
