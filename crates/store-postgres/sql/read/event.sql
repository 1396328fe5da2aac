-- An event that has not expired.
SELECT j.id, j.prev, j.type, j.key, j.sub, j.tenant, j.value, j.context, j.cause_event, j.cause_task, j.depth
FROM pointsman.journal j
WHERE j.id = $1 AND j.id > (SELECT expired_up_to FROM pointsman.last_commit)
