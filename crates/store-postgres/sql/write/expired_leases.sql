-- Tasks that pull workers have locked since $2, and whose leases ended before $1.
SELECT seq, queue, event, order_number, phase, lane, lane_position, concurrency_group, key_bucket, sync, stage,
       priority, score, rank, due, attempt, retries, crashes, late, node, fence, leased_until, started, prev_sent,
       planned, created, reason, error
FROM pointsman.task WHERE leased_until < $1 AND started >= $2 AND phase = 5 ORDER BY leased_until
