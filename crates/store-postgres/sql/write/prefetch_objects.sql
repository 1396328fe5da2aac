-- These objects, and the first two tasks of the lane of each: $3 has the lane that object 0 would have, or NULL; the
-- numbers of the lanes of two consecutive objects differ by $4.
SELECT w.i, o.number, o.last_event, o.last_sent, t.seq, t.queue, t.key_bucket, t.concurrency_group, t.score, t.due,
       t.lane_position, t.phase
FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS w (tenant, key, first_lane, i)
CROSS JOIN LATERAL (SELECT * FROM pointsman.object WHERE tenant = w.tenant AND key = w.key LIMIT 1) o
LEFT JOIN LATERAL (
    SELECT seq, queue, key_bucket, concurrency_group, score, due, lane_position, phase FROM pointsman.task
    WHERE lane = o.number * $4 + w.first_lane AND lane_position IS NOT NULL
    ORDER BY lane, lane_position LIMIT 2
) t ON true
ORDER BY w.i, t.lane_position
