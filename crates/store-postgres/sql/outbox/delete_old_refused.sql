-- Deletes rows that were set aside more than $1 seconds ago, at most $2.
DELETE FROM pointsman.outbox_refused
WHERE n IN (SELECT n FROM pointsman.outbox_refused
            WHERE refused_at < (extract(epoch FROM now())::bigint - $1) * 1000000 ORDER BY n LIMIT $2)
