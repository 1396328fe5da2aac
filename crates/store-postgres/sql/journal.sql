-- The journal and its sparse index.

-- name: read_event
-- An event; an expired one only if an active task needs it.
SELECT j.:event_columns FROM pointsman.journal j
WHERE j.id = $1
  AND (j.id > $2
       OR EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq >= j.first_task AND t.seq < j.first_task + j.tasks)
       OR EXISTS (SELECT 1 FROM pointsman.task t WHERE t.late AND t.event = j.id))

-- name: find_unexpired_event
-- An event that has not expired.
SELECT j.:event_columns FROM pointsman.journal j
WHERE j.id = $1 AND j.id > (SELECT expired_up_to FROM pointsman.last_commit)

-- name: prefetch_events
-- Events of the tasks that are about to run. They are in the partitions from $2 to $3, or among the retained rows.
SELECT j.:event_columns FROM pointsman.journal j WHERE j.id = ANY ($1) AND (j.number < 0 OR j.number BETWEEN $2 AND $3)

-- name: list_events_between
-- Events from one id to another, the oldest first.
SELECT j.:event_columns FROM pointsman.journal j WHERE j.id >= $1 AND j.id <= $2 AND j.id > $3 ORDER BY j.id LIMIT $4

-- name: list_events
-- At most $3 events after $1 and up to $2, the oldest first, each with the sum of the bytes up to it; none beyond $6
-- bytes. With a tenant ($4) or a key ($5), the values of other events are not read.
SELECT bytes, :event_columns
FROM (
    SELECT c.*, sum(octet_length(c.value)) OVER (ORDER BY c.id ASC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (
        SELECT e.*
        FROM pointsman.journal j
        CROSS JOIN LATERAL (
            -- All columns are those of `j`, except `value`.
            SELECT :event_columns
            FROM (SELECT CASE WHEN ($4 IS NULL OR j.tenant = $4) AND ($5 IS NULL OR j.key = $5) THEN j.value
                              ELSE 'null' END AS value) v
        ) e
        WHERE j.id > greatest($1, (SELECT expired_up_to FROM pointsman.last_commit)) AND j.id <= $2
        ORDER BY j.id ASC
        LIMIT $3
    ) c
) w
WHERE bytes - octet_length(value) < $6
ORDER BY id ASC

-- name: list_events_backwards
-- At most $3 events after $1 and up to $2, the newest first, each with the sum of the bytes up to it; none beyond $6
-- bytes. With a tenant ($4) or a key ($5), the values of other events are not read.
SELECT bytes, :event_columns
FROM (
    SELECT c.*, sum(octet_length(c.value)) OVER (ORDER BY c.id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (
        SELECT e.*
        FROM pointsman.journal j
        CROSS JOIN LATERAL (
            -- All columns are those of `j`, except `value`.
            SELECT :event_columns
            FROM (SELECT CASE WHEN ($4 IS NULL OR j.tenant = $4) AND ($5 IS NULL OR j.key = $5) THEN j.value
                              ELSE 'null' END AS value) v
        ) e
        WHERE j.id > greatest($1, (SELECT expired_up_to FROM pointsman.last_commit)) AND j.id <= $2
        ORDER BY j.id DESC
        LIMIT $3
    ) c
) w
WHERE bytes - octet_length(value) < $6
ORDER BY id DESC

-- name: list_caused_events
-- Events that these events caused, in their order: at most $2, and none beyond $3 bytes.
SELECT :event_columns FROM (
    SELECT c.*, sum(octet_length(c.value)) OVER (ORDER BY c.nth, c.id ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (
        SELECT cause.nth, j.*
        FROM unnest($1) WITH ORDINALITY AS cause (id, nth)
        JOIN pointsman.journal j ON j.cause_event = cause.id
        ORDER BY cause.nth, j.id
        LIMIT $2
    ) c
) w
WHERE bytes - octet_length(value) < $3
ORDER BY nth, id

-- name: list_events_of_object
-- An object's events, the newest first, as far as they have not expired: at most $3, and none beyond $4 bytes.
WITH RECURSIVE events AS (
    SELECT 1 AS nth, octet_length(j.value)::bigint AS bytes, j.:event_columns
    FROM pointsman.object o
    CROSS JOIN LATERAL (SELECT * FROM pointsman.journal j WHERE j.id = o.last_event LIMIT 1) j
    WHERE o.tenant = $1 AND o.key = $2 AND j.id > (SELECT expired_up_to FROM pointsman.last_commit)
    UNION ALL
    SELECT p.nth + 1, p.bytes + octet_length(j.value), j.:event_columns
    FROM events p
    CROSS JOIN LATERAL (SELECT * FROM pointsman.journal j WHERE j.id = p.prev LIMIT 1) j
    WHERE p.nth < $3 AND p.bytes < $4 AND j.id > (SELECT expired_up_to FROM pointsman.last_commit)
)
SELECT :event_columns FROM events ORDER BY nth

-- name: list_events_of_unfinished_tasks
-- At most $3 events after id $1 and up to $2, and whether unfinished tasks need each.
SELECT j.id, EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq >= j.first_task AND t.seq < j.first_task + j.tasks)
             OR EXISTS (SELECT 1 FROM pointsman.task t WHERE t.late AND t.event = j.id)
FROM pointsman.journal j WHERE j.id > $1 AND j.id <= $2 ORDER BY j.id LIMIT $3

-- name: find_last_event_up_to
-- The last event up to an id.
SELECT id FROM pointsman.journal WHERE id <= $1 ORDER BY id DESC LIMIT 1

-- name: find_event_near_number
-- The id of the last event in the sparse index up to a number.
SELECT id FROM pointsman.journal_sparse_index WHERE number <= $1 ORDER BY number DESC LIMIT 1

-- name: read_event_number
-- The number of an event.
SELECT abs(number) FROM pointsman.journal WHERE id = $1

-- name: read_journal_range
-- The id up to which events have expired, and the id of the newest event. Only the partition of the newest event is
-- scanned.
SELECT s.expired_up_to,
       coalesce((SELECT j.id FROM pointsman.journal j WHERE j.number >= s.journaled_events ORDER BY j.id DESC LIMIT 1),
                0)
FROM pointsman.last_commit s

-- name: list_partition_starts
-- The first events of the journal's partitions of $1 rows. Each is in the sparse index, because the partition size is a
-- multiple of the interval of that index.
SELECT number, id FROM pointsman.journal_sparse_index WHERE number % $1 = 0 ORDER BY number

-- name: insert_events
-- Appends events to the journal.
INSERT INTO pointsman.journal (number, :event_columns) SELECT * FROM unnest($1::bigint[], :event_arrays)

-- name: insert_sparse_index_entries
-- Inserts entries into the sparse index of the journal.
INSERT INTO pointsman.journal_sparse_index (number, id) SELECT * FROM unnest($1::bigint[], $2::bigint[])

-- name: delete_expired_sparse_index_entries
-- Deletes entries of the sparse index up to event $1, except the last one, which says how many events came before.
DELETE FROM pointsman.journal_sparse_index
WHERE number < (SELECT max(number) FROM pointsman.journal_sparse_index WHERE id <= $1)

-- name: delete_all_sparse_index_entries
-- Deletes the sparse index of the journal.
DELETE FROM pointsman.journal_sparse_index
