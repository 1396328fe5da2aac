-- Deletes old audit entries.
DELETE FROM pointsman.audit_entry WHERE n IN (SELECT n FROM pointsman.audit_entry ORDER BY n LIMIT $2) AND at < $1
RETURNING 1
