-- Tasks that a node has locked, the oldest first.
SELECT seq, queue, event, order_number, phase, lane, lane_position, concurrency_group, key_bucket, sync, stage,
       priority, score, rank, due, attempt, retries, crashes, late, node, fence, leased_until, started, prev_sent,
       planned, created, reason, error
FROM pointsman.task WHERE phase = 5 AND node = $1 ORDER BY seq
