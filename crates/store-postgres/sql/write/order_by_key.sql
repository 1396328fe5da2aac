-- A tenant's unfinished order by its key, and whether its task is locked.
SELECT o.n, o.key, o.node, o.tenant, o.value, o.priority, o.planned, o.created, o.started, o.suspended, o.task,
       coalesce((SELECT t.phase = 5 FROM pointsman.task t WHERE t.seq = o.task), false), o.origin, o.depth,
       o.step_succeeded,
       o.suspended_by_task, o.took_on_error
FROM pointsman.orders o WHERE o.key = $1 AND o.tenant = $2
