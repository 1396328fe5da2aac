-- An object's events, the newest first, as far as they have not expired: at most $3, and none beyond $4 bytes.
WITH RECURSIVE events AS (
    SELECT 1 AS nth, octet_length(j.value)::bigint AS bytes, j.id, j.prev, j.type, j.key, j.sub, j.tenant, j.value,
           j.context, j.cause_event, j.cause_task, j.depth
    FROM pointsman.object o
    CROSS JOIN LATERAL (SELECT * FROM pointsman.journal j WHERE j.id = o.last_event LIMIT 1) j
    WHERE o.tenant = $1 AND o.key = $2 AND j.id > (SELECT expired_up_to FROM pointsman.last_commit)
    UNION ALL
    SELECT p.nth + 1, p.bytes + octet_length(j.value), j.id, j.prev, j.type, j.key, j.sub, j.tenant, j.value,
           j.context, j.cause_event, j.cause_task, j.depth
    FROM events p
    CROSS JOIN LATERAL (SELECT * FROM pointsman.journal j WHERE j.id = p.prev LIMIT 1) j
    WHERE p.nth < $3 AND p.bytes < $4 AND j.id > (SELECT expired_up_to FROM pointsman.last_commit)
)
SELECT id, prev, type, key, sub, tenant, value, context, cause_event, cause_task, depth FROM events ORDER BY nth
