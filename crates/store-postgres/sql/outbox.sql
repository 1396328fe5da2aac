-- Events that were emitted in SQL and have no id yet, their receipts, and the rows that were set aside.

-- name: read_outbox_state
-- At most $1 waiting rows of the outbox, with the columns that determine their read set, and the state of the drainer
-- and of the progress in each row. If nothing waits, one row with the latter. Texts that are too long for an event,
-- which only a manual insert can write, are shortened, but remain too long.
SELECT w.asleep, w.empty_up_to, w.candidate, w.candidate_xact, w.oldest, w.newest, w.last,
       o.n, left(o.type, 256), left(o.tenant, 129), left(o.key, 513), left(o.idempotency_key, 256)
FROM (SELECT (SELECT last_value FROM pointsman.drainer_state) = 1 AS asleep,
             m.empty_up_to, m.candidate, m.candidate_xact::text::bigint AS candidate_xact,
             pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest,
             pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS newest,
             s.last_value AS last
      FROM pointsman.outbox_progress m CROSS JOIN pointsman.outbox_number s) w
LEFT JOIN LATERAL (
    SELECT * FROM pointsman.outbox
    WHERE n > CASE WHEN w.empty_up_to <= w.last THEN w.empty_up_to ELSE 0 END
    ORDER BY n LIMIT $1) o ON true
ORDER BY o.n

-- name: find_last_row_up_to_progress
-- The last row at or below the progress: only a manual insert with an explicit number can be there.
SELECT o.n FROM pointsman.outbox o
WHERE o.n <= (SELECT CASE WHEN m.empty_up_to <= s.last_value THEN m.empty_up_to ELSE 0 END
              FROM pointsman.outbox_progress m, pointsman.outbox_number s)
ORDER BY o.n DESC LIMIT 1

-- name: take_rows
-- Removes and returns the rows of the outbox from $1 up to $2, in order: at most $3 rows, and none after $4 bytes.
WITH first AS (
    SELECT n, octet_length(value) + octet_length(type) + coalesce(octet_length(context), 0)
              + coalesce(octet_length(key), 0) + coalesce(octet_length(idempotency_key), 0) AS bytes
    FROM pointsman.outbox WHERE n BETWEEN $1 AND $2 ORDER BY n LIMIT $3
), next AS (
    SELECT n, sum(bytes) OVER (ORDER BY n) - bytes AS before FROM first
), taken AS (
    DELETE FROM pointsman.outbox o USING next WHERE o.n = next.n AND next.before < $4
    RETURNING o.n, o.receipt, o.type, o.key, o.sub, o.tenant, o.value, o.context, o.due, o.priority, o.idempotency_key,
              o.digest, o.at, o.cause_event, o.cause_task, o.cause_depth
)
SELECT * FROM taken ORDER BY n

-- name: insert_receipts
-- Inserts receipts with their row numbers and events. A number exists already only if the sequence was reset, and the
-- older receipt is useless then.
INSERT INTO pointsman.receipt (n, receipt, event)
SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[])
ON CONFLICT (n) DO UPDATE SET receipt = excluded.receipt, event = excluded.event

-- name: insert_refused_row
-- Sets a row aside that is not an event, unchanged, with the reason ($14) and the time ($15).
INSERT INTO pointsman.outbox_refused
    (n, receipt, type, key, sub, tenant, value, context, due, priority, idempotency_key, digest, at, reason, refused_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)

-- name: set_empty_up_to
-- Records that the outbox is and stays empty up to $1.
UPDATE pointsman.outbox_progress SET empty_up_to = $1

-- name: record_progress_candidate
-- Sets the candidate to $2, the last number at an earlier read, and the progress to $1. Every transaction with a number
-- up to the candidate had its transaction id before this one gets its own. A crashed server must not fall back behind a
-- candidate that was read, so this commit waits for the disk whatever is set.
UPDATE pointsman.outbox_progress
SET empty_up_to = $1, candidate = $2, candidate_xact = pg_current_xact_id()
WHERE set_config('synchronous_commit', 'on', true) IS NOT NULL

-- name: mark_drainer_asleep
-- Sets the flag that the drainer sleeps: the next emit notifies. Nothing is lost with this commit, so it does not wait
-- for the disk.
SELECT set_config('synchronous_commit', 'off', true), setval('pointsman.drainer_state', 1)
FROM pointsman.drainer_state WHERE last_value <> 1

-- name: find_event_of_receipt
-- The id of the event of a receipt, if it has one.
SELECT pointsman.event_of($1)

-- name: count_refused_rows
-- Counts the rows that were set aside, up to 100,001.
SELECT count(*) FROM (SELECT FROM pointsman.outbox_refused LIMIT 100001) AS refused

-- name: delete_expired_idempotency_keys
-- Deletes idempotency keys that were used more than $1 seconds ago, the oldest first, at most $2.
DELETE FROM pointsman.outbox_idempotency_key
WHERE (tenant, key) IN (SELECT tenant, key FROM pointsman.outbox_idempotency_key
                        WHERE at < (extract(epoch FROM now())::bigint - $1) * 1000000 ORDER BY at LIMIT $2)

-- name: delete_expired_receipts
-- Deletes receipts whose events are older than $1 seconds, the oldest first, at most $2.
DELETE FROM pointsman.receipt
WHERE n IN (SELECT n FROM pointsman.receipt ORDER BY n LIMIT $2)
  AND event < (extract(epoch FROM now())::bigint - $1) * 1000000

-- name: delete_expired_refused_rows
-- Deletes rows that were set aside more than $1 seconds ago, at most $2.
DELETE FROM pointsman.outbox_refused
WHERE n IN (SELECT n FROM pointsman.outbox_refused
            WHERE refused_at < (extract(epoch FROM now())::bigint - $1) * 1000000 ORDER BY n LIMIT $2)
