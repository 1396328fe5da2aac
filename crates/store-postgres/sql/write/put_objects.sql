-- Remembers the last event of objects.
INSERT INTO pointsman.object (tenant, key, number, last, sent)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[])
ON CONFLICT (tenant, key) DO UPDATE SET last = excluded.last, sent = excluded.sent
