-- Ended orders, kept so that a repeated request does not run an order twice.

-- name: read_ended_order
-- How the last order of a tenant and key ended.
SELECT outcome, node, ended FROM pointsman.ended_order WHERE key = $1 AND tenant = $2

-- name: upsert_ended_orders
-- Inserts ended orders, replacing earlier ones of the same tenant and key.
INSERT INTO pointsman.ended_order (key, tenant, outcome, node, ended)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
ON CONFLICT (key, tenant) DO UPDATE SET outcome = excluded.outcome, node = excluded.node, ended = excluded.ended

-- name: delete_expired_ended_orders
-- Deletes ended orders whose ids may be used again. The subquery finds them by the index on their age; a join may scan
-- the whole table.
DELETE FROM pointsman.ended_order
WHERE ctid = ANY (ARRAY(SELECT ctid FROM pointsman.ended_order WHERE ended < $1 ORDER BY ended LIMIT $2))
RETURNING 1
