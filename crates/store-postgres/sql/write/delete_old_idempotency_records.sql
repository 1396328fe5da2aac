-- Deletes expired idempotency records. The subquery finds them by the index on their age; a join may
-- scan the whole table.
DELETE FROM pointsman.idempotency_record
WHERE ctid = ANY (ARRAY(SELECT ctid FROM pointsman.idempotency_record WHERE at < $1 ORDER BY at LIMIT $2))
RETURNING 1
