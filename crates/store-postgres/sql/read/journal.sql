-- At most $3 events after $1 and up to $2, the oldest first, each with the sum of the bytes up to it; none beyond $6
-- bytes. With a tenant ($4) or a key ($5), the values of other events are not read.
SELECT id, prev, type, key, sub, tenant, value, context, cause_event, cause_task, depth, bytes
FROM (
    SELECT c.*, sum(octet_length(c.value)) OVER (ORDER BY c.id ASC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (
        SELECT j.id, j.prev, j.type, j.key, j.sub, j.tenant,
               CASE WHEN ($4 IS NULL OR j.tenant = $4) AND ($5 IS NULL OR j.key = $5) THEN j.value ELSE 'null' END
                   AS value,
               j.context, j.cause_event, j.cause_task, j.depth
        FROM pointsman.journal j
        WHERE j.id > greatest($1, (SELECT expired_up_to FROM pointsman.last_commit)) AND j.id <= $2
        ORDER BY j.id ASC
        LIMIT $3
    ) c
) w
WHERE bytes - octet_length(value) < $6
ORDER BY id ASC
