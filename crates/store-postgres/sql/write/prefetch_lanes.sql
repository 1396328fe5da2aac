-- The first tasks, at most $2, of each of these lanes.
SELECT w.lane, t.seq, t.queue, t.key_bucket, t.concurrency_group, t.score, t.due, t.lane_position, t.phase
FROM unnest($1::bigint[]) AS w (lane)
CROSS JOIN LATERAL (
    SELECT seq, queue, key_bucket, concurrency_group, score, due, lane_position, phase FROM pointsman.task
    WHERE lane = w.lane AND lane_position IS NOT NULL ORDER BY lane, lane_position LIMIT $2
) t
ORDER BY w.lane, t.lane_position
