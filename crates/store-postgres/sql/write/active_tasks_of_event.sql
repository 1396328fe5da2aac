-- The active tasks that were created with an event.
SELECT t.seq, t.queue, t.event, t.order_number, t.phase, t.lane, t.lane_position, t.concurrency_group, t.key_bucket,
       t.sync, t.stage, t.priority, t.score, t.rank, t.due, t.attempt, t.retries, t.crashes, t.late, t.node, t.fence,
       t.leased_until, t.started, t.prev_sent, t.planned, t.created, t.reason, t.error
FROM pointsman.journal j
JOIN pointsman.task t ON t.seq >= j.first_task AND t.seq < j.first_task + j.tasks
WHERE j.id = $1 ORDER BY t.seq
