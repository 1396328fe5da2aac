-- Ended orders whose ids are no longer remembered.
DELETE FROM pointsman.ended_order
WHERE (key, tenant) IN (SELECT key, tenant FROM pointsman.ended_order WHERE ended < $1 ORDER BY ended LIMIT $2)
RETURNING 1
