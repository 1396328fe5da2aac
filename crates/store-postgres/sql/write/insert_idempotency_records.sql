-- Inserts idempotency records.
INSERT INTO pointsman.idempotency (tenant, key, digest, answer, at)
SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::bigint[])
