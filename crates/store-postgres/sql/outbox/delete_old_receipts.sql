-- Deletes receipts whose events are older than $1 seconds, the oldest first, at most $2.
DELETE FROM pointsman.receipt
WHERE n IN (SELECT n FROM pointsman.receipt ORDER BY n LIMIT $2)
  AND event < (extract(epoch FROM now())::bigint - $1) * 1000000
