-- The best ready tasks of each queue, as many as its share: by score, rank and age.
SELECT t.seq, t.queue, t.event, t.order_number, t.phase, t.lane, t.lane_position, t.concurrency_group, t.key_bucket,
       t.sync, t.stage, t.priority, t.score, t.rank, t.due, t.attempt, t.retries, t.crashes, t.late, t.node, t.fence,
       t.leased_until, t.started, t.prev_sent, t.planned, t.created, t.reason, t.error
FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS w (queue, share, i)
CROSS JOIN LATERAL (
    SELECT * FROM pointsman.task WHERE phase = 3 AND queue = w.queue ORDER BY queue, score DESC, rank, seq LIMIT w.share
) t
ORDER BY w.i
