-- Updates the changeable columns of tasks.
UPDATE pointsman.task t
SET phase = u.phase, place = u.place, rank = u.rank, due = u.due, attempt = u.attempt, retries = u.retries,
    crashes = u.crashes, late = u.late, node = u.node, fence = u.fence, until = u.until, started = u.started,
    reason = u.reason, error = u.error
FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
            $8::bigint[], $9::boolean[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::smallint[],
            $15::text[])
     AS u (seq, phase, place, rank, due, attempt, retries, crashes, late, node, fence, until, started, reason, error)
WHERE t.seq = ANY (ARRAY[u.seq])
