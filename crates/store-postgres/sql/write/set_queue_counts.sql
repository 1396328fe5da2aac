-- Writes the counters of queues.
UPDATE pointsman.queue q
SET ready = u.ready, waiting = u.waiting, scheduled = u.scheduled, running = u.running, halted = u.halted,
    missing = u.missing
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
     AS u (id, ready, waiting, scheduled, running, halted, missing)
WHERE q.id = ANY (ARRAY[u.id])
