-- Inserts tenants with their uuids.
INSERT INTO pointsman.tenant (name, canvas_id) SELECT DISTINCT * FROM unnest($1::text[], $2::uuid[])
ON CONFLICT (name) DO NOTHING
