-- Makes a queue without tasks. Writers come one after the other, so that the next number is free.
WITH known AS (
    INSERT INTO pointsman.tenant (name, canvas_id) VALUES ($2, $4) ON CONFLICT (name) DO NOTHING
)
INSERT INTO pointsman.queue (id, handler, tenant, collection, canvas_id)
SELECT coalesce(max(id), 0) + 1, $1, $2, $3, $4 FROM pointsman.queue
RETURNING id
