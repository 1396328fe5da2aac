-- Updates the changeable columns of tasks.
UPDATE pointsman.task t
SET phase = u.phase, lane_position = u.lane_position, rank = u.rank, due = u.due, attempt = u.attempt,
    retries = u.retries, crashes = u.crashes, late = u.late, node = u.node, fence = u.fence,
    leased_until = u.leased_until, started = u.started, reason = u.reason, error = u.error
FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
            $8::bigint[], $9::boolean[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::smallint[],
            $15::text[])
     AS u (seq, phase, lane_position, rank, due, attempt, retries, crashes, late, node, fence, leased_until, started,
           reason, error)
WHERE t.seq = ANY (ARRAY[u.seq])
