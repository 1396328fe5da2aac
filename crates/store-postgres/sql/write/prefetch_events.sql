-- These events, for the tasks that are about to run. They lie in slices from $2 to $3, or were kept.
SELECT j.id, j.prev, j.type, j.key, j.sub, j.tenant, j.value, j.context, j.cause_event, j.cause_task, j.depth
FROM pointsman.journal j WHERE j.id = ANY ($1) AND (j.number < 0 OR j.number BETWEEN $2 AND $3)
