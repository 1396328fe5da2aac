-- The audit log.

-- name: list_audit_entries
-- At most $2 audit entries before number $1, the newest first.
SELECT n, at, by, action, what, detail FROM pointsman.audit_entry WHERE n < $1 ORDER BY n DESC LIMIT $2

-- name: insert_audit_entry
-- Inserts an audit entry.
INSERT INTO pointsman.audit_entry (at, by, action, what, detail) VALUES ($1, $2, $3, $4, $5)

-- name: delete_expired_audit_entries
-- Deletes old audit entries.
DELETE FROM pointsman.audit_entry WHERE n IN (SELECT n FROM pointsman.audit_entry ORDER BY n LIMIT $2) AND at < $1
RETURNING 1
