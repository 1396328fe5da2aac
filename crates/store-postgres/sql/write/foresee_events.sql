-- These events, for the tasks that are about to run.
SELECT j.id, j.prev, j.type, j.key, j.sub, j.tenant, j.value, j.context, j.cause_event, j.cause_task, j.depth
FROM pointsman.journal j WHERE j.id = ANY ($1)
