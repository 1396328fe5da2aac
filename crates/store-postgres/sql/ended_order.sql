-- Ended orders, kept so that a repeated request does not run an order twice.

-- name: read_ended_order
-- How the last order of a tenant and key ended.
SELECT :ended_order_columns FROM pointsman.ended_order WHERE key = $1 AND tenant = $2

-- name: upsert_ended_orders
-- Inserts ended orders, replacing earlier ones of the same tenant and key.
INSERT INTO pointsman.ended_order (:ended_order_columns) SELECT * FROM unnest(:ended_order_arrays)
ON CONFLICT (key, tenant) DO UPDATE SET (:ended_order_columns) = ROW (excluded.:ended_order_columns)

-- name: delete_expired_ended_orders
-- Deletes ended orders whose ids may be used again. The subquery finds them by the index on their age; a join may scan
-- the whole table.
DELETE FROM pointsman.ended_order
WHERE ctid = ANY (ARRAY(SELECT ctid FROM pointsman.ended_order WHERE ended < $1 ORDER BY ended LIMIT $2))
RETURNING 1
