-- Answers that nobody will ask for any more.
DELETE FROM pointsman.idempotency
WHERE (tenant, key) IN (SELECT tenant, key FROM pointsman.idempotency WHERE at < $1 ORDER BY at LIMIT $2)
RETURNING 1
