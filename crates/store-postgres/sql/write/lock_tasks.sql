-- Locks tasks. Their other columns stay.
UPDATE pointsman.task t
SET phase = 5, attempt = u.attempt, node = u.node, fence = u.fence, leased_until = u.leased_until, started = u.started
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
     AS u (seq, attempt, node, fence, leased_until, started)
WHERE t.seq = ANY (ARRAY[u.seq])
