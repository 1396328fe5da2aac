-- Inserts orders.
INSERT INTO pointsman.orders
       (n, key, chain, node, tenant, value, priority, planned, created, started, suspended, task, origin, depth,
        step_succeeded, suspended_by_task, took_on_error)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                     $8::bigint[], $9::bigint[], $10::bigint[], $11::boolean[], $12::bigint[], $13::bigint[],
                     $14::bigint[], $15::boolean[], $16::bigint[], $17::boolean[])
