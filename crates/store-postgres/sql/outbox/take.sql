-- Takes from the outbox what stands behind $1 and not behind $2, in order: at most $3 rows, and no more when they have
-- $4 bytes.
WITH next AS (
    SELECT n, sum(octet_length(value)) OVER (ORDER BY n) - octet_length(value) AS before
    FROM (SELECT n, value FROM pointsman.outbox WHERE n > $1 AND n <= $2 ORDER BY n LIMIT $3) first
), taken AS (
    DELETE FROM pointsman.outbox o USING next WHERE o.n = next.n AND next.before < $4
    RETURNING o.n, o.receipt, o.type, o.key, o.sub, o.tenant, o.value, o.context, o.due, o.priority, o.idempotency_key,
              o.digest, o.at, o.cause_event, o.cause_task, o.cause_depth
)
SELECT * FROM taken ORDER BY n
