-- Writes what has changed in orders.
UPDATE pointsman.orders o
SET node = u.node, value = u.value, planned = u.planned, started = u.started, suspended = u.suspended, task = u.task,
    stepped = u.stepped, halted_by = u.halted_by
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[], $7::bigint[],
            $8::boolean[], $9::bigint[])
     AS u (n, node, value, planned, started, suspended, task, stepped, halted_by)
WHERE o.n = ANY (ARRAY[u.n])
