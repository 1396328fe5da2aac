-- These objects, and for each given handler the first two tasks of the object's lane.
SELECT w.i, o.number, o.last, o.sent, t.seq, t.queue, t.bucket, t.crowd, t.score, t.due, t.place, t.phase
FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS w (tenant, key, handler, i)
CROSS JOIN LATERAL (SELECT * FROM pointsman.object WHERE tenant = w.tenant AND key = w.key LIMIT 1) o
LEFT JOIN LATERAL (
    SELECT seq, queue, bucket, crowd, score, due, place, phase FROM pointsman.task
    WHERE lane = o.number * 1048576 + w.handler % 1048576 AND place IS NOT NULL AND w.handler > 0
    ORDER BY lane, place LIMIT 2
) t ON true
ORDER BY w.i, t.place
