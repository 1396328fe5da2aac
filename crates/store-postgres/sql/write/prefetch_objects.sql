-- These objects, and for each given handler the first two tasks of the object's lane.
SELECT w.i, o.number, o.last_event, o.last_sent, t.seq, t.queue, t.key_bucket, t.concurrency_group, t.score, t.due,
       t.lane_position, t.phase
FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS w (tenant, key, handler, i)
CROSS JOIN LATERAL (SELECT * FROM pointsman.object WHERE tenant = w.tenant AND key = w.key LIMIT 1) o
LEFT JOIN LATERAL (
    SELECT seq, queue, key_bucket, concurrency_group, score, due, lane_position, phase FROM pointsman.task
    WHERE lane = o.number * 1048576 + w.handler % 1048576 AND lane_position IS NOT NULL AND w.handler > 0
    ORDER BY lane, lane_position LIMIT 2
) t ON true
ORDER BY w.i, t.lane_position
