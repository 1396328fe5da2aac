-- Idempotency keys used over HTTP, with the responses.

-- name: list_idempotency_records
-- The idempotency records of these tenants and keys.
SELECT a.:idempotency_record_columns
FROM unnest($1::text[], $2::text[]) AS w (tenant, key)
CROSS JOIN LATERAL (
    SELECT * FROM pointsman.idempotency_record WHERE tenant = w.tenant AND key = w.key LIMIT 1
) a

-- name: insert_idempotency_records
-- Inserts idempotency records.
INSERT INTO pointsman.idempotency_record (:idempotency_record_columns)
SELECT * FROM unnest(:idempotency_record_arrays)

-- name: delete_expired_idempotency_records
-- Deletes expired idempotency records. The subquery finds them by the index on their age; a join may scan the whole
-- table.
DELETE FROM pointsman.idempotency_record
WHERE ctid = ANY (ARRAY(SELECT ctid FROM pointsman.idempotency_record WHERE at < $1 ORDER BY at LIMIT $2))
RETURNING 1
