-- These queues with their counters.
SELECT id, handler, tenant, collection, ready, waiting, scheduled, running, halted, missing
FROM pointsman.queue WHERE id = ANY ($1) ORDER BY id
