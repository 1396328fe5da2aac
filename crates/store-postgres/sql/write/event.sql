-- An event; an expired one only if an active task needs it.
SELECT j.id, j.prev, j.type, j.key, j.sub, j.tenant, j.value, j.context, j.cause_event, j.cause_task, j.depth
FROM pointsman.journal j
WHERE j.id = $1
  AND (j.id > $2 OR EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq >= j.first_task AND t.seq < j.first_task + j.tasks)
                 OR EXISTS (SELECT 1 FROM pointsman.task t WHERE t.late AND t.event = j.id))
