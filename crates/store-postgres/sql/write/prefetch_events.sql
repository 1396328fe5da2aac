-- Events of the tasks that are about to run. They are in the partitions from $2 to $3, or among the retained rows.
SELECT j.id, j.prev, j.type, j.key, j.sub, j.tenant, j.value, j.context, j.cause_event, j.cause_task, j.depth
FROM pointsman.journal j WHERE j.id = ANY ($1) AND (j.number < 0 OR j.number BETWEEN $2 AND $3)
