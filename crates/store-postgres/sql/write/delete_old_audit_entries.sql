-- Deletes old audit entries.
DELETE FROM pointsman.deed WHERE n IN (SELECT n FROM pointsman.deed ORDER BY n LIMIT $2) AND at < $1
RETURNING 1
