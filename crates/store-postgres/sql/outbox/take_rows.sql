-- Removes and returns the rows of the outbox from $1 up to $2, in order: at most $3 rows, and none after $4 bytes.
WITH first AS (
    SELECT n, octet_length(value) + octet_length(type) + coalesce(octet_length(context), 0)
              + coalesce(octet_length(key), 0) + coalesce(octet_length(idempotency_key), 0) AS bytes
    FROM pointsman.outbox WHERE n BETWEEN $1 AND $2 ORDER BY n LIMIT $3
), next AS (
    SELECT n, sum(bytes) OVER (ORDER BY n) - bytes AS before FROM first
), taken AS (
    DELETE FROM pointsman.outbox o USING next WHERE o.n = next.n AND next.before < $4
    RETURNING o.n, o.receipt, o.type, o.key, o.sub, o.tenant, o.value, o.context, o.due, o.priority, o.idempotency_key,
              o.digest, o.at, o.cause_event, o.cause_task, o.cause_depth
)
SELECT * FROM taken ORDER BY n
