-- Deletes idempotency keys that were used more than $1 seconds ago, the oldest first, at most $2.
DELETE FROM pointsman.outbox_idempotency_key
WHERE (tenant, key) IN (SELECT tenant, key FROM pointsman.outbox_idempotency_key
                        WHERE at < (extract(epoch FROM now())::bigint - $1) * 1000000 ORDER BY at LIMIT $2)
