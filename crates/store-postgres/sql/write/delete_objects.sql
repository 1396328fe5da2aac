-- Deletes objects. Each is found by its key first: a join may go through all objects instead.
DELETE FROM pointsman.object WHERE ctid = ANY (ARRAY(
    SELECT o.row_id FROM unnest($1::text[], $2::text[]) AS unused (tenant, key)
    CROSS JOIN LATERAL (
        SELECT ctid AS row_id FROM pointsman.object WHERE tenant = unused.tenant AND key = unused.key LIMIT 1
    ) o))
