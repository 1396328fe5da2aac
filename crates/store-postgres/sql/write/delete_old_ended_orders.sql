-- Deletes ended orders whose ids may be used again. The
-- subquery finds them by the index on their age; a join may scan the whole table.
DELETE FROM pointsman.ended_order
WHERE ctid = ANY (ARRAY(SELECT ctid FROM pointsman.ended_order WHERE ended < $1 ORDER BY ended LIMIT $2))
RETURNING 1
