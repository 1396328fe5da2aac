-- Inserts ended orders, replacing earlier ones of the same tenant and key.
INSERT INTO pointsman.ended_order (key, tenant, outcome, node, ended)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
ON CONFLICT (key, tenant) DO UPDATE SET outcome = excluded.outcome, node = excluded.node, ended = excluded.ended
