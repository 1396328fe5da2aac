-- Idempotency keys used over HTTP, with the responses.

-- name: list_idempotency_records
-- The idempotency records of these tenants and keys.
SELECT a.tenant, a.key, a.digest, a.response
FROM unnest($1::text[], $2::text[]) AS w (tenant, key)
CROSS JOIN LATERAL (
    SELECT * FROM pointsman.idempotency_record WHERE tenant = w.tenant AND key = w.key LIMIT 1
) a

-- name: insert_idempotency_records
-- Inserts idempotency records.
INSERT INTO pointsman.idempotency_record (tenant, key, digest, response, at)
SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::bigint[])

-- name: delete_expired_idempotency_records
-- Deletes expired idempotency records. The subquery finds them by the index on their age; a join may scan the whole
-- table.
DELETE FROM pointsman.idempotency_record
WHERE ctid = ANY (ARRAY(SELECT ctid FROM pointsman.idempotency_record WHERE at < $1 ORDER BY at LIMIT $2))
RETURNING 1
