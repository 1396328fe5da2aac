-- Deletes objects.
DELETE FROM pointsman.object o USING unnest($1::text[], $2::text[]) AS unused (tenant, key)
WHERE o.tenant = unused.tenant AND o.key = unused.key
