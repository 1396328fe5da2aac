-- At most $2 audit entries before number $1, the newest first.
SELECT n, at, by, action, what, detail FROM pointsman.audit_entry WHERE n < $1 ORDER BY n DESC LIMIT $2
