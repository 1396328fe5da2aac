-- Events that these events caused, in their order: at most $2, and none beyond $3 bytes.
SELECT id, prev, type, key, sub, tenant, value, context, cause_event, cause_task, depth
FROM (
    SELECT c.*, sum(octet_length(c.value)) OVER (ORDER BY c.nth, c.id ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (
        SELECT cause.nth, j.*
        FROM unnest($1) WITH ORDINALITY AS cause (id, nth)
        JOIN pointsman.journal j ON j.cause_event = cause.id
        ORDER BY cause.nth, j.id
        LIMIT $2
    ) c
) w
WHERE bytes - octet_length(value) < $3
ORDER BY nth, id
