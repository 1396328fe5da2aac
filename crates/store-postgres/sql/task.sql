-- Unfinished tasks.

-- name: read_active_task
-- An active task.
SELECT :task_columns FROM pointsman.task WHERE seq = $1

-- name: list_active_tasks_by_seq
-- These active tasks, with columns of related tables.
SELECT t.:task_columns, h.name, q.tenant, q.collection, j.type, j.key,
       (SELECT o.key FROM pointsman.orders o WHERE o.n = t.order_number),
       CASE WHEN t.phase >= :halted THEN (SELECT max(a.ended) FROM pointsman.attempt a WHERE a.task = t.seq) END
FROM pointsman.task t
JOIN pointsman.queue q ON q.id = t.queue
JOIN pointsman.handler h ON h.id = q.handler
LEFT JOIN LATERAL (SELECT j.type, j.key FROM pointsman.journal j WHERE j.id = t.event LIMIT 1) j ON true
WHERE t.seq = ANY ($1)

-- name: list_active_tasks
-- At most $2 active tasks before $1, the newest first.
SELECT t.:task_columns, h.name, q.tenant, q.collection, j.type, j.key,
       (SELECT o.key FROM pointsman.orders o WHERE o.n = t.order_number),
       CASE WHEN t.phase >= :halted THEN (SELECT max(a.ended) FROM pointsman.attempt a WHERE a.task = t.seq) END
FROM (SELECT * FROM pointsman.task WHERE seq < $1 ORDER BY seq DESC LIMIT $2) t
JOIN pointsman.queue q ON q.id = t.queue
JOIN pointsman.handler h ON h.id = q.handler
LEFT JOIN LATERAL (SELECT j.type, j.key FROM pointsman.journal j WHERE j.id = t.event LIMIT 1) j ON true
ORDER BY t.seq DESC

-- name: list_running_tasks
-- At most $2 locked tasks before $1, the newest first. They are few, and found by their partial index.
WITH running AS MATERIALIZED (SELECT * FROM pointsman.task WHERE phase = :locked)
SELECT t.:task_columns, h.name, q.tenant, q.collection, j.type, j.key,
       (SELECT o.key FROM pointsman.orders o WHERE o.n = t.order_number),
       CASE WHEN t.phase >= :halted THEN (SELECT max(a.ended) FROM pointsman.attempt a WHERE a.task = t.seq) END
FROM (SELECT * FROM running WHERE seq < $1 ORDER BY seq DESC LIMIT $2) t
JOIN pointsman.queue q ON q.id = t.queue
JOIN pointsman.handler h ON h.id = q.handler
LEFT JOIN LATERAL (SELECT j.type, j.key FROM pointsman.journal j WHERE j.id = t.event LIMIT 1) j ON true
ORDER BY t.seq DESC

-- name: list_halted_or_missing_tasks
-- At most $2 halted or missing tasks before $1, the newest first.
SELECT t.:task_columns, h.name, q.tenant, q.collection, j.type, j.key,
       (SELECT o.key FROM pointsman.orders o WHERE o.n = t.order_number),
       CASE WHEN t.phase >= :halted THEN (SELECT max(a.ended) FROM pointsman.attempt a WHERE a.task = t.seq) END
FROM (SELECT * FROM pointsman.task WHERE seq < $1 AND phase >= :halted ORDER BY seq DESC LIMIT $2) t
JOIN pointsman.queue q ON q.id = t.queue
JOIN pointsman.handler h ON h.id = q.handler
LEFT JOIN LATERAL (SELECT j.type, j.key FROM pointsman.journal j WHERE j.id = t.event LIMIT 1) j ON true
ORDER BY t.seq DESC

-- name: list_task_seqs_of_event
-- Tasks of an event: those created when it was journaled, and replays. An expired event exists only as long as an
-- active task needs it.
SELECT created.seq
FROM pointsman.journal j, generate_series(j.first_task, j.first_task + j.tasks - 1) AS created (seq)
WHERE j.id = $1
  AND (j.id > (SELECT expired_up_to FROM pointsman.last_commit)
       OR EXISTS (SELECT FROM pointsman.task t WHERE t.seq >= j.first_task AND t.seq < j.first_task + j.tasks)
       OR EXISTS (SELECT FROM pointsman.task t WHERE t.late AND t.event = j.id))
UNION
SELECT t.seq FROM pointsman.task t WHERE t.late AND t.event = $1
UNION
SELECT p.seq FROM pointsman.history p
WHERE p.late AND p.event = $1 AND p.n > (SELECT expired_archive_number FROM pointsman.last_commit)

-- name: list_lanes_of_object
-- The first non-empty lanes of an object, at most $4 of the $3 that it can have: for each lane its first task with
-- columns of related tables, and the number of its tasks, counted up to $5. The index finds each lane from the one
-- before it, however many tasks that one has.
WITH RECURSIVE head AS (
    SELECT 1 AS nth, t.lane, t.seq, (o.number + 1) * $3 AS until
    FROM pointsman.object o
    CROSS JOIN LATERAL (
        SELECT lane, seq FROM pointsman.task
        WHERE lane >= o.number * $3 AND lane < (o.number + 1) * $3 AND lane_position IS NOT NULL
        ORDER BY lane, lane_position LIMIT 1
    ) t
    WHERE o.tenant = $1 AND o.key = $2
    UNION ALL
    SELECT h.nth + 1, t.lane, t.seq, h.until
    FROM head h
    CROSS JOIN LATERAL (
        SELECT lane, seq FROM pointsman.task
        WHERE lane > h.lane AND lane < h.until AND lane_position IS NOT NULL
        ORDER BY lane, lane_position LIMIT 1
    ) t
    WHERE h.nth < $4
)
SELECT t.:task_columns, n.name, q.tenant, q.collection, j.type, j.key,
       (SELECT o.key FROM pointsman.orders o WHERE o.n = t.order_number),
       CASE WHEN t.phase >= :halted THEN (SELECT max(a.ended) FROM pointsman.attempt a WHERE a.task = t.seq) END,
       (SELECT count(*) FROM (
            SELECT FROM pointsman.task b WHERE b.lane = h.lane AND b.lane_position IS NOT NULL LIMIT $5
        ) b)
FROM head h
JOIN pointsman.task t ON t.seq = h.seq
JOIN pointsman.queue q ON q.id = t.queue
JOIN pointsman.handler n ON n.id = q.handler
LEFT JOIN LATERAL (SELECT j.type, j.key FROM pointsman.journal j WHERE j.id = t.event LIMIT 1) j ON true
ORDER BY h.nth

-- name: list_lost_fences
-- The fences of the attempts (tasks $1, fences $2) that no longer lease their task.
SELECT leased.fence
FROM unnest($1::bigint[], $2::bigint[]) AS leased (task, fence)
WHERE NOT EXISTS (
    SELECT FROM pointsman.task t WHERE t.seq = leased.task AND t.fence = leased.fence AND t.phase = :locked
)

-- name: list_lane_tasks
-- All tasks of a lane, by position.
SELECT seq, queue FROM pointsman.task WHERE lane = $1 AND lane_position IS NOT NULL ORDER BY lane_position

-- name: list_lane_heads
-- The first tasks, at most $2, of each of these lanes.
SELECT w.lane, t.seq, t.queue, t.key_bucket, t.concurrency_group, t.score, t.due, t.lane_position, t.phase
FROM unnest($1::bigint[]) AS w (lane)
CROSS JOIN LATERAL (
    SELECT seq, queue, key_bucket, concurrency_group, score, due, lane_position, phase FROM pointsman.task
    WHERE lane = w.lane AND lane_position IS NOT NULL ORDER BY lane, lane_position LIMIT $2
) t
ORDER BY w.lane, t.lane_position

-- name: list_counted_tasks_of_concurrency_group
-- Ready, scheduled and locked tasks of a concurrency group.
SELECT seq FROM pointsman.task WHERE concurrency_group = $1 AND phase IN (:ready, :scheduled, :locked) LIMIT $2

-- name: find_oldest_blocked_in_concurrency_group
-- The oldest blocked task of a concurrency group.
SELECT seq, queue, key_bucket, concurrency_group, score, due FROM pointsman.task
WHERE concurrency_group = $1 AND phase = :blocked_by_task ORDER BY seq LIMIT 1

-- name: list_first_ready_tasks_of_queues
-- The first ready tasks of each queue, as many as its share: by score, rank and age.
SELECT t.:task_columns
FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS w (queue, share, i)
CROSS JOIN LATERAL (
    SELECT * FROM pointsman.task
    WHERE phase = :ready AND queue = w.queue ORDER BY queue, score DESC, rank, seq LIMIT w.share
) t
ORDER BY w.i

-- name: read_queue_head
-- The next ready task of a queue.
SELECT score, seq FROM pointsman.task WHERE phase = :ready AND queue = $1 ORDER BY queue, score DESC, rank, seq LIMIT 1

-- name: count_ready_tasks_before
-- Counts the ready tasks of a queue that come before a task with this score, rank and number, up to $5.
SELECT count(*) FROM (
    SELECT 1 FROM pointsman.task
    WHERE phase = :ready AND queue = $1
      AND (score > $2 OR score = $2 AND (rank < $3 OR rank = $3 AND seq < $4))
    ORDER BY queue, score DESC, rank, seq LIMIT $5
) AS ahead

-- name: list_rank_ranges
-- For each score and bucket of a queue's ready tasks, the least and the greatest rank.
SELECT score, key_bucket, min(rank), max(rank) FROM pointsman.task
WHERE phase = :ready AND queue = $1 GROUP BY score, key_bucket

-- name: list_scheduled_tasks
-- All scheduled tasks, by score, rank and age.
SELECT :task_columns FROM pointsman.task WHERE phase = :scheduled ORDER BY score DESC, rank, seq

-- name: list_scheduled_tasks_of_queue
-- A queue's scheduled tasks, the oldest first. Scheduled tasks are few in all queues together.
SELECT seq FROM pointsman.task WHERE phase = :scheduled AND queue = $1 ORDER BY seq LIMIT $2

-- name: list_missing_tasks_of_queue
-- A queue's missing tasks, the oldest first.
SELECT seq FROM pointsman.task WHERE phase = :missing AND queue = $1 ORDER BY queue, seq LIMIT $2

-- name: list_tasks_in_phases
-- A queue's tasks in these phases, the oldest first. For rare operations on a whole queue: it scans all tasks.
SELECT seq FROM pointsman.task WHERE queue = $1 AND phase = ANY ($2) ORDER BY seq LIMIT $3

-- name: list_due_tasks
-- Delayed tasks that are due, the earliest first.
SELECT seq, queue, key_bucket, concurrency_group, score, due FROM pointsman.task
WHERE phase = :delayed AND due <= $1 ORDER BY due LIMIT $2

-- name: read_earliest_due_time
-- The earliest due time of the delayed tasks.
SELECT due FROM pointsman.task WHERE phase = :delayed ORDER BY due LIMIT 1

-- name: list_sync_gated_tasks
-- Tasks of an event that wait for its synchronous tasks.
SELECT seq, queue, key_bucket, concurrency_group, score, due, lane, lane_position, stage FROM pointsman.task
WHERE phase = :sync_gated AND event = $1 ORDER BY stage, seq

-- name: list_active_tasks_of_event
-- The active tasks that were created with an event.
SELECT t.:task_columns
FROM pointsman.journal j
JOIN pointsman.task t ON t.seq >= j.first_task AND t.seq < j.first_task + j.tasks
WHERE j.id = $1 ORDER BY t.seq

-- name: list_tasks_locked_by_node
-- Tasks that a node has locked, the oldest first.
SELECT :task_columns FROM pointsman.task WHERE phase = :locked AND node = $1 ORDER BY seq

-- name: list_expired_worker_leases
-- Tasks that pull workers have locked since $2, and whose leases ended before $1.
SELECT :task_columns FROM pointsman.task
WHERE leased_until < $1 AND started >= $2 AND phase = :locked ORDER BY leased_until

-- name: list_running_tasks_of_handler
-- Locked tasks of a handler, at most $2.
SELECT t.seq FROM pointsman.task t JOIN pointsman.queue q ON q.id = t.queue
WHERE t.phase = :locked AND q.handler = $1 LIMIT $2

-- name: list_tasks_to_rescore
-- A queue's unfinished tasks with what their scores are computed from.
SELECT seq, priority, created FROM pointsman.task WHERE queue = $1

-- name: list_tasks_to_regroup
-- A queue's tasks without a lane that have an object: scheduled and locked ones first, then by age.
SELECT t.seq, t.queue, t.key_bucket, t.concurrency_group, t.score, t.due, t.phase, j.key
FROM pointsman.task t JOIN pointsman.journal j ON j.id = t.event
WHERE t.queue = $1 AND t.phase <= :locked AND t.lane IS NULL AND j.key IS NOT NULL
ORDER BY t.phase >= :scheduled DESC, t.seq

-- name: insert_tasks
-- Inserts active tasks.
INSERT INTO pointsman.task (:task_columns) SELECT * FROM unnest(:task_arrays)

-- name: update_tasks
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

-- name: lock_tasks
-- Locks tasks. Their other columns stay.
UPDATE pointsman.task t
SET phase = :locked, attempt = u.attempt, node = u.node, fence = u.fence, leased_until = u.leased_until,
    started = u.started
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
     AS u (seq, attempt, node, fence, leased_until, started)
WHERE t.seq = ANY (ARRAY[u.seq])

-- name: update_phases
-- Sets phase and rank of tasks.
UPDATE pointsman.task t SET phase = u.phase, rank = u.rank
FROM unnest($1::bigint[], $2::smallint[], $3::bigint[]) AS u (seq, phase, rank)
WHERE t.seq = ANY (ARRAY[u.seq])

-- name: update_groupings
-- Sets lane, concurrency group and bucket of tasks.
UPDATE pointsman.task t SET lane = u.lane, concurrency_group = u.concurrency_group, key_bucket = u.key_bucket
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[]) AS u (seq, lane, concurrency_group, key_bucket)
WHERE t.seq = ANY (ARRAY[u.seq])

-- name: update_concurrency_groups
-- Sets the concurrency groups of tasks.
UPDATE pointsman.task t SET concurrency_group = u.concurrency_group
FROM unnest($1::bigint[], $2::bigint[]) AS u (seq, concurrency_group)
WHERE t.seq = ANY (ARRAY[u.seq])

-- name: update_scores
-- Writes the scores of tasks.
UPDATE pointsman.task t SET score = u.score
FROM unnest($1::bigint[], $2::bigint[]) AS u (seq, score) WHERE t.seq = ANY (ARRAY[u.seq])

-- name: set_lease_end
-- Extends the lease of a pull worker.
UPDATE pointsman.task SET leased_until = $2 WHERE seq = $1 AND leased_until IS NOT NULL

-- name: delete_tasks
-- Removes tasks that have ended.
DELETE FROM pointsman.task WHERE seq = ANY ($1)
