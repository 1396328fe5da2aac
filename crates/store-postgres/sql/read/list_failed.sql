-- At most $2 failed tasks before $1, the newest first.
SELECT p.seq, p.queue, p.event, p.type, p.key, p.status, p.reason, p.sync, p.stage, p.priority, p.attempt, p.retries,
       p.crashes, p.late, p.has_lane, p.prev_sent, p.planned, p.created, p.started, p.finished, p.error, p.result,
       h.name, q.tenant
FROM (
    SELECT * FROM pointsman.history
    WHERE seq < $1 AND n > (SELECT expired_archive_number FROM pointsman.last_commit) AND status = 1
    ORDER BY seq DESC
    LIMIT $2
) p
JOIN pointsman.queue q ON q.id = p.queue
JOIN pointsman.handler h ON h.id = q.handler
ORDER BY p.seq DESC
