-- Sets a row aside that is not an event, unchanged, with the reason ($14) and the time ($15).
INSERT INTO pointsman.outbox_refused
    (n, receipt, type, key, sub, tenant, value, context, due, priority, idempotency_key, digest, at, reason, refused_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
