-- Events from one id to another, the oldest first.
SELECT j.id, j.prev, j.type, j.key, j.sub, j.tenant, j.value, j.context, j.cause_event, j.cause_task, j.depth
FROM pointsman.journal j WHERE j.id >= $1 AND j.id <= $2 AND j.id > $3 ORDER BY j.id LIMIT $4
