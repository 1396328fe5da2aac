-- Deletes objects. Each object is looked up by its key, because a join may scan all objects.
DELETE FROM pointsman.object WHERE ctid = ANY (ARRAY(
    SELECT o.row_id FROM unnest($1::text[], $2::text[]) AS unused (tenant, key)
    CROSS JOIN LATERAL (
        SELECT ctid AS row_id FROM pointsman.object WHERE tenant = unused.tenant AND key = unused.key LIMIT 1
    ) o))
