-- The answers that were given for these idempotency keys.
SELECT a.tenant, a.key, a.digest, a.answer
FROM unnest($1::text[], $2::text[]) AS w (tenant, key)
JOIN pointsman.idempotency a ON a.tenant = w.tenant AND a.key = w.key
