-- The audit log.

-- name: list_audit_entries
-- At most $2 audit entries before number $1, the newest first.
SELECT :audit_entry_columns FROM pointsman.audit_entry WHERE n < $1 ORDER BY n DESC LIMIT $2

-- name: insert_audit_entry
-- Inserts an audit entry. It gets the next number, whatever its `n` is.
INSERT INTO pointsman.audit_entry (:audit_entry_columns) OVERRIDING USER VALUE
SELECT * FROM unnest(:audit_entry_arrays)

-- name: delete_expired_audit_entries
-- Deletes old audit entries.
DELETE FROM pointsman.audit_entry WHERE n IN (SELECT n FROM pointsman.audit_entry ORDER BY n LIMIT $2) AND at < $1
RETURNING 1
