-- Inserts an audit entry.
INSERT INTO pointsman.audit_entry (at, by, action, what, detail) VALUES ($1, $2, $3, $4, $5)
