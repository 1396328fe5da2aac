-- Roles, or all of them in this database, for which commits do not wait for the disk. What they emit in SQL is theirs to
-- commit.
SELECT coalesce(r.rolname, '')::text, s.setdatabase <> 0, word
FROM pg_db_role_setting s
CROSS JOIN unnest(s.setconfig) AS words (word)
LEFT JOIN pg_roles r ON r.oid = s.setrole
WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
  AND word IN ('synchronous_commit=off', 'synchronous_commit=local')
ORDER BY 1, 2
