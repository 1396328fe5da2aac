-- Updates the changeable columns of orders.
UPDATE pointsman.orders o
SET node = u.node, value = u.value, planned = u.planned, started = u.started, suspended = u.suspended, task = u.task,
    step_succeeded = u.step_succeeded, suspended_by_task = u.suspended_by_task, took_on_error = u.took_on_error
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[], $7::bigint[],
            $8::boolean[], $9::bigint[], $10::boolean[])
     AS u (n, node, value, planned, started, suspended, task, step_succeeded, suspended_by_task, took_on_error)
WHERE o.n = ANY (ARRAY[u.n])
