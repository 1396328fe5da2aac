-- The first tasks, at most $2, of each of these lanes.
SELECT w.lane, t.seq, t.queue, t.bucket, t.crowd, t.score, t.due, t.place, t.phase
FROM unnest($1::bigint[]) AS w (lane)
CROSS JOIN LATERAL (
    SELECT seq, queue, bucket, crowd, score, due, place, phase FROM pointsman.task
    WHERE lane = w.lane AND place IS NOT NULL ORDER BY lane, place LIMIT $2
) t
ORDER BY w.lane, t.place
