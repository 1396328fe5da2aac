-- Unfinished orders.

-- name: read_order
-- An unfinished order by its number, and whether its task is locked.
SELECT o.:order_columns,
       coalesce((SELECT t.phase = :locked FROM pointsman.task t WHERE t.seq = o.task), false)
FROM pointsman.orders o WHERE o.n = $1

-- name: find_order_by_key
-- A tenant's unfinished order by its key, and whether its task is locked.
SELECT o.:order_columns,
       coalesce((SELECT t.phase = :locked FROM pointsman.task t WHERE t.seq = o.task), false)
FROM pointsman.orders o WHERE o.key = $1 AND o.tenant = $2

-- name: prefetch_orders
-- The orders whose steps are about to run.
SELECT o.:order_columns,
       coalesce((SELECT t.phase = :locked FROM pointsman.task t WHERE t.seq = o.task), false)
FROM pointsman.orders o WHERE o.n = ANY ($1)

-- name: list_order_numbers_after
-- The numbers of unfinished orders of chain $1 after order $2, at most $3.
SELECT n FROM pointsman.orders WHERE chain = $1 AND n > $2 ORDER BY n LIMIT $3

-- name: find_order_with_task
-- An order with its task, and with the task whose failure suspended it.
SELECT o.:order_columns, coalesce(t.phase = :locked, false), t.phase, t.due, t.retries, h.name, f.handler, f.of,
       f.unfinished, f.error
FROM pointsman.orders o
LEFT JOIN pointsman.task t ON t.seq = o.task
LEFT JOIN pointsman.queue q ON q.id = t.queue
LEFT JOIN pointsman.handler h ON h.id = q.handler
LEFT JOIN LATERAL (
    SELECT h.name AS handler, q.collection AS of, true AS unfinished, t.error
    FROM pointsman.task t
    JOIN pointsman.queue q ON q.id = t.queue
    JOIN pointsman.handler h ON h.id = q.handler
    WHERE o.suspended_by_task IS NOT NULL AND t.seq = o.suspended_by_task
    UNION ALL
    SELECT h.name, p.type, false, p.error
    FROM pointsman.history p
    JOIN pointsman.queue q ON q.id = p.queue
    JOIN pointsman.handler h ON h.id = q.handler
    WHERE o.suspended_by_task IS NOT NULL AND p.seq = o.suspended_by_task
      AND p.n > (SELECT expired_archive_number FROM pointsman.last_commit)
    LIMIT 1
) f ON true
WHERE o.key = $1 AND o.tenant = $2

-- name: list_orders_with_tasks
-- At most $5 orders with their tasks, by key and tenant: after the order $1 of the tenant $8, with keys from $2 on and
-- before $3, of a tenant ($4) or of all. Each row has the sum of the value bytes up to it; beyond $7 bytes no row is
-- returned. Without $6 the values are not read.
SELECT o.bytes, o.:order_columns, coalesce(t.phase = :locked, false), t.phase, t.due, t.retries, h.name, f.handler,
       f.of, f.unfinished, f.error
FROM (
    SELECT c.*, sum(octet_length(c.value)) OVER (ORDER BY c.key, c.tenant ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (
        SELECT e.*
        FROM pointsman.orders o
        CROSS JOIN LATERAL (
            -- All columns are those of `o`, except `value`.
            SELECT :order_columns FROM (SELECT CASE WHEN $6 THEN o.value ELSE 'null' END AS value) v
        ) e
        WHERE (o.key, o.tenant) > ($1, $8) AND o.key >= $2 AND o.key < $3 AND ($4 IS NULL OR o.tenant = $4)
        ORDER BY o.key, o.tenant
        LIMIT $5
    ) c
) o
LEFT JOIN pointsman.task t ON t.seq = o.task
LEFT JOIN pointsman.queue q ON q.id = t.queue
LEFT JOIN pointsman.handler h ON h.id = q.handler
LEFT JOIN LATERAL (
    SELECT h.name AS handler, q.collection AS of, true AS unfinished, t.error
    FROM pointsman.task t
    JOIN pointsman.queue q ON q.id = t.queue
    JOIN pointsman.handler h ON h.id = q.handler
    WHERE o.suspended_by_task IS NOT NULL AND t.seq = o.suspended_by_task
    UNION ALL
    SELECT h.name, p.type, false, p.error
    FROM pointsman.history p
    JOIN pointsman.queue q ON q.id = p.queue
    JOIN pointsman.handler h ON h.id = q.handler
    WHERE o.suspended_by_task IS NOT NULL AND p.seq = o.suspended_by_task
      AND p.n > (SELECT expired_archive_number FROM pointsman.last_commit)
    LIMIT 1
) f ON true
WHERE o.bytes - octet_length(o.value) < $7
ORDER BY o.key, o.tenant

-- name: count_orders_by_state
-- Counts orders by state: with keys from $1 on and before $2, of a tenant ($3) or all, at the time $4. $5 selects among
-- these keys: `all`, the `children` of the folder $1, or `exactly` $1 and, if that is a chain, its orders.
SELECT count(*),
       count(*) FILTER (WHERE o.started IS NULL AND o.planned IS NULL),
       count(*) FILTER (WHERE o.started IS NULL AND o.planned > $4),
       count(*) FILTER (WHERE o.started IS NULL AND o.planned <= $4),
       count(o.started),
       count(o.task),
       count(*) FILTER (WHERE t.phase = :locked),
       count(*) FILTER (WHERE t.retries > 0 AND t.phase <= :ready),
       count(*) FILTER (WHERE o.suspended)
FROM pointsman.orders o
LEFT JOIN pointsman.task t ON t.seq = o.task
WHERE o.key >= $1 AND o.key < $2
  AND ($3 IS NULL OR o.tenant = $3)
  AND CASE $5
        WHEN 'children' THEN o.key <> $1 AND strpos(substr(o.key, length($1) + 1), '/') = 0
        WHEN 'exactly' THEN o.key = $1 OR (strpos($1, ',') = 0 AND starts_with(o.key, $1 || ','))
        ELSE true
      END

-- name: count_orders_by_chain_node
-- Counts the orders at each node of each chain.
SELECT chain, node, count(*)
FROM pointsman.orders
GROUP BY chain, node
ORDER BY chain COLLATE "C", node COLLATE "C"

-- name: insert_orders
-- Inserts orders.
INSERT INTO pointsman.orders (:order_columns) SELECT * FROM unnest(:order_arrays)

-- name: update_orders
-- Updates the changeable columns of orders.
UPDATE pointsman.orders o
SET node = u.node, value = u.value, planned = u.planned, started = u.started, suspended = u.suspended, task = u.task,
    step_succeeded = u.step_succeeded, suspended_by_task = u.suspended_by_task, took_on_error = u.took_on_error
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[], $7::bigint[],
            $8::boolean[], $9::bigint[], $10::boolean[])
     AS u (n, node, value, planned, started, suspended, task, step_succeeded, suspended_by_task, took_on_error)
WHERE o.n = ANY (ARRAY[u.n])

-- name: delete_orders
-- Deletes orders that have ended.
DELETE FROM pointsman.orders WHERE n = ANY ($1)
