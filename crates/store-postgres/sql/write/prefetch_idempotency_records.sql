-- The idempotency records of these tenants and keys.
SELECT a.tenant, a.key, a.digest, a.response
FROM unnest($1::text[], $2::text[]) AS w (tenant, key)
CROSS JOIN LATERAL (
    SELECT * FROM pointsman.idempotency_record WHERE tenant = w.tenant AND key = w.key LIMIT 1
) a
