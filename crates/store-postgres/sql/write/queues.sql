-- All queues with their counters.
SELECT id, handler, tenant, collection, ready, waiting, scheduled, running, halted, missing
FROM pointsman.queue ORDER BY id
