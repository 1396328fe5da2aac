-- Inserts idempotency records.
INSERT INTO pointsman.idempotency_record (tenant, key, digest, response, at)
SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::bigint[])
