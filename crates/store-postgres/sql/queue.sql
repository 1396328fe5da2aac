-- Queues and their counters.

-- name: list_queues
-- All queues with their counters.
SELECT :queue_columns FROM pointsman.queue ORDER BY id

-- name: list_queues_by_id
-- These queues with their counters.
SELECT :queue_columns FROM pointsman.queue WHERE id = ANY ($1) ORDER BY id

-- name: list_queues_with_tasks
-- Queues of a handler ($1), or all, that have active tasks, and the creation time of the next ready task of each.
SELECT q.:queue_columns, h.name,
       CASE WHEN q.ready > 0 THEN
           (SELECT t.created FROM pointsman.task t WHERE t.queue = q.id AND t.phase = :ready
            ORDER BY t.score DESC, t.rank, t.seq LIMIT 1)
       END
FROM pointsman.queue q
JOIN pointsman.handler h ON h.id = q.handler
WHERE ($1 IS NULL OR h.name = $1)
  AND q.ready + q.waiting + q.scheduled + q.running + q.halted + q.missing > 0
ORDER BY h.name COLLATE "C", q.tenant COLLATE "C", q.collection COLLATE "C"

-- name: has_handler_only_collection_queues
-- Whether all queues of a handler are those of a source.
SELECT coalesce(bool_and(q.collection <> '' AND q.collection NOT LIKE '/%'), false)
FROM pointsman.queue q
JOIN pointsman.handler h ON h.id = q.handler
WHERE h.name = $1

-- name: create_queue
-- Inserts an empty queue. Writers are serialized, so the next number is free.
WITH tenant_row AS (
    INSERT INTO pointsman.tenant (name, canvas_id) VALUES ($2, $4) ON CONFLICT (name) DO NOTHING
)
INSERT INTO pointsman.queue (id, handler, tenant, collection, canvas_id)
SELECT coalesce(max(id), 0) + 1, $1, $2, $3, $4 FROM pointsman.queue
RETURNING id

-- name: write_queue_counts
-- Writes the counters of queues.
UPDATE pointsman.queue q
SET ready = u.ready, waiting = u.waiting, scheduled = u.scheduled, running = u.running, halted = u.halted,
    missing = u.missing
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
     AS u (id, ready, waiting, scheduled, running, halted, missing)
WHERE q.id = ANY (ARRAY[u.id])
