-- Inserts an empty queue. Writers are serialized, so the next number is free.
WITH tenant_row AS (
    INSERT INTO pointsman.tenant (name, canvas_id) VALUES ($2, $4) ON CONFLICT (name) DO NOTHING
)
INSERT INTO pointsman.queue (id, handler, tenant, collection, canvas_id)
SELECT coalesce(max(id), 0) + 1, $1, $2, $3, $4 FROM pointsman.queue
RETURNING id
